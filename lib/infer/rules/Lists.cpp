//===- lib/infer/rules/Lists.cpp - lists and maps of tensors ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Lists and maps of tensors are values: an op that adds an element returns a
// new list. Lists of local rows are not supported: a list has global values, or
// its type is unknown.
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

ArrayRef<OpRule> families::lists() {
  static const OpRule Rules[] = {
      // Lists.
      entry(op::EmptyTensorList, Whole),
      entry(op::TensorListConcat, Whole),
      entry(op::TensorListConcatLists, Whole),
      entry(op::TensorListConcatV2, Whole),
      entry(op::TensorListElementShape, Whole),
      entry(op::TensorListFromTensor, Whole),
      entry(op::TensorListGather, Whole),
      entry(op::TensorListGetItem, Whole),
      entry(op::TensorListLength, Whole),
      entry(op::TensorListPopBack, Whole),
      entry(op::TensorListPushBack, Whole),
      entry(op::TensorListPushBackBatch, Whole),
      entry(op::TensorListReserve, Whole),
      entry(op::TensorListResize, Whole),
      entry(op::TensorListScatter, Whole),
      entry(op::TensorListScatterIntoExistingList, Whole),
      entry(op::TensorListScatterV2, Whole),
      entry(op::TensorListSetItem, Whole),
      entry(op::TensorListSplit, Whole),
      entry(op::TensorListStack, Whole),

      // Maps.
      entry(op::TensorMapErase, Whole),
      entry(op::TensorMapHasKey, Whole),
      entry(op::TensorMapInsert, Whole),
      entry(op::TensorMapLookup, Whole),
      entry(op::TensorMapSize, Whole),
      entry(op::TensorMapStackKeys, Whole),

      // Other variants.
      entry(op::OptionalHasValue, Whole),
      entry(op::CompositeTensorVariantFromComponents, Whole),
      entry(op::CompositeTensorVariantToComponents, Whole),
      entry(op::CompressElement, Whole),
      entry(op::UncompressElement, Whole),
  };
  return Rules;
}

} // namespace graft
