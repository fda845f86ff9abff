//===- lib/infer/rules/OnceOps.cpp - ops that exist once --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Ops that must stay unreplicated: summaries, prints, files, Python functions,
// and ops whose state the op registry does not show (isOnceOp).
//
//===----------------------------------------------------------------------===//

#include "lib/infer/rules/Rules.h"

using namespace llvm;

namespace graft {

ArrayRef<OpRule> families::onceOps() {
  using namespace trait;
  static const OpRule Rules[] = {
      {.Op = op::AccumulatorNumAccumulated, .Is = Once},
      {.Op = op::AnonymousHashTable, .Is = Once},
      {.Op = op::AnonymousMutableDenseHashTable, .Is = Once},
      {.Op = op::AnonymousMutableHashTable, .Is = Once},
      {.Op = op::AnonymousMutableHashTableOfTensors, .Is = Once},
      {.Op = op::AudioSummary, .Is = Once},
      {.Op = op::AudioSummaryV2, .Is = Once},
      {.Op = op::BarrierIncompleteSize, .Is = Once},
      {.Op = op::BarrierReadySize, .Is = Once},
      {.Op = op::BarrierTakeMany, .Is = Once},
      {.Op = op::EagerPyFunc, .Is = Once},
      {.Op = op::GetSessionHandle, .Is = Once},
      {.Op = op::GetSessionHandleV2, .Is = Once},
      {.Op = op::GetSessionTensor, .Is = Once},
      {.Op = op::HistogramSummary, .Is = Once},
      {.Op = op::ImageSummary, .Is = Once},
      {.Op = op::LoadAndRemapMatrix, .Is = Once},
      {.Op = op::LookupTableExport, .Is = Once},
      {.Op = op::MergeSummary, .Is = Once},
      {.Op = op::MergeV2Checkpoints, .Is = Once},
      {.Op = op::Print, .Is = Once},
      {.Op = op::PrintV2, .Is = Once},
      {.Op = op::PyFunc, .Is = Once},
      {.Op = op::PyFuncStateless, .Is = Once},
      {.Op = op::QueueIsClosed, .Is = Once},
      {.Op = op::QueueSize, .Is = Once},
      {.Op = op::RandomShuffleQueue, .Is = Once},
      {.Op = op::RandomShuffleQueueV2, .Is = Once},
      {.Op = op::ReaderNumRecordsProduced, .Is = Once},
      {.Op = op::ReaderNumWorkUnitsCompleted, .Is = Once},
      {.Op = op::ReaderRead, .Is = Once},
      {.Op = op::ReaderReadUpTo, .Is = Once},
      {.Op = op::ReaderSerializeState, .Is = Once},
      {.Op = op::RecordInput, .Is = Once},
      {.Op = op::Restore, .Is = Once},
      {.Op = op::RestoreSlice, .Is = Once},
      {.Op = op::RestoreV2, .Is = Once},
      {.Op = op::RetrieveAllTPUEmbeddingParameters, .Is = Once},
      {.Op = op::RetrieveTPUEmbeddingADAMParameters, .Is = Once},
      {.Op = op::RetrieveTPUEmbeddingAdadeltaParameters, .Is = Once},
      {.Op = op::RetrieveTPUEmbeddingAdagradMomentumParameters, .Is = Once},
      {.Op = op::RetrieveTPUEmbeddingAdagradParameters, .Is = Once},
      {.Op = op::RetrieveTPUEmbeddingCenteredRMSPropParameters, .Is = Once},
      {.Op = op::RetrieveTPUEmbeddingFTRLParameters, .Is = Once},
      {.Op = op::RetrieveTPUEmbeddingFrequencyEstimatorParameters, .Is = Once},
      {.Op = op::RetrieveTPUEmbeddingMDLAdagradLightParameters, .Is = Once},
      {.Op = op::RetrieveTPUEmbeddingMomentumParameters, .Is = Once},
      {.Op = op::RetrieveTPUEmbeddingProximalAdagradParameters, .Is = Once},
      {.Op = op::RetrieveTPUEmbeddingProximalYogiParameters, .Is = Once},
      {.Op = op::RetrieveTPUEmbeddingRMSPropParameters, .Is = Once},
      {.Op = op::RetrieveTPUEmbeddingStochasticGradientDescentParameters,
       .Is = Once},
      {.Op = op::RpcServer, .Is = Once},
      {.Op = op::SaveV2, .Is = Once},
      {.Op = op::ScalarSummary, .Is = Once},
      {.Op = op::Skipgram, .Is = Once},
      {.Op = op::SparseAccumulatorTakeGradient, .Is = Once},
      {.Op = op::StringFormat, .Is = Once},
      {.Op = op::TensorSummary, .Is = Once},
      {.Op = op::TensorSummaryV2, .Is = Once},
      {.Op = op::Timestamp, .Is = Once},
      {.Op = op::WriteFile, .Is = Once},
  };
  return Rules;
}

} // namespace graft
