//===- lib/infer/rules/Reshape.cpp - the same elements in another shape ---===//
//
// SPDX-License-Identifier: Apache-2.0
//
// Ops that reshape or repeat elements, or fill a tensor with one element.
//
//===----------------------------------------------------------------------===//

#include "lib/graph/Walk.h"
#include "lib/infer/rules/Rules.h"
#include "lib/ops/ProgramOps.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <array>

using namespace llvm;

namespace graft {

namespace sizes {

/// Returns the number of blocks of rows in an axis that merges the axes
/// \p From: the product of the sizes before the batch axis (3 for [3, b]).
/// Returns 0 if the batch axis is outermost or the number is not known.
static int64_t countBlocks(const SizeContext &C, ArrayRef<DimId> From) {
  int64_t Count = 1;
  for (DimId D : From) {
    if (C.Table.hasSym(D))
      return Count > 1 ? Count : 0;
    int64_t Number = C.Table.number(D);
    if (Number <= 0 || MulOverflow(Count, Number, Count))
      return 0;
  }
  return 0;
}

/// Returns the index of the batch axis in \p To, the sizes into which an axis
/// with \p Blocks blocks of rows is split. The sizes before the batch axis have
/// the product \p Blocks. Without blocks, the batch axis is the outermost one.
static std::optional<size_t> findBatch(const SizeContext &C, ArrayRef<DimId> To,
                                       int64_t Blocks) {
  if (Blocks == 0)
    return 0;
  int64_t Count = 1;
  for (auto [I, D] : enumerate(To)) {
    if (Count == Blocks)
      return I;
    int64_t Number = C.Table.hasSym(D) ? -1 : C.Table.number(D);
    if (Number <= 0 || MulOverflow(Count, Number, Count))
      return std::nullopt;
  }
  return std::nullopt;
}

/// Assigns a symbol to the batch axis in \p To. The products of To and \p From
/// are equal, so the symbol is that product divided by the other sizes of To.
/// The batch axis of To is the outermost one, unless From is known to consist
/// of blocks. If \p Anywhere is set and To is a single size, the batch axis of
/// From may be any axis; otherwise it must be the outermost.
static void spread(SizeContext &C, ArrayRef<DimId> From, ArrayRef<DimId> To,
                   bool Anywhere = false) {
  bool OfRows = Anywhere && To.size() == 1 ? C.Table.hasSymAny(From)
                                           : C.Table.hasSym(From.front());
  if (!OfRows)
    return;
  if (int64_t Blocks = To.size() == 1 ? countBlocks(C, From) : 0)
    C.markBlocks(To.front(), Blocks);
  int64_t Blocks = From.size() == 1 ? C.blocks(From.front()) : 0;
  auto Batch = findBatch(C, To, Blocks);
  if (!Batch)
    return;
  // Keep the symbol of the batch axis, if it has one. If From consists of
  // blocks, replace a symbol that only a constant claims.
  if (auto Is = C.Table.sym(To[*Batch]);
      C.Table.hasSym(To[*Batch]) &&
      (Blocks == 0 || !Is || C.Table.isOfSplit(*Is)))
    return;
  Sym Total;
  for (DimId D : From) {
    auto S = C.Table.sym(D);
    if (!S || !Total.multiply(*S))
      return;
  }
  for (auto [I, D] : enumerate(To)) {
    if (I == *Batch)
      continue;
    auto S = C.Table.sym(D);
    if (!S || S->C <= 0 || Total.C % S->C != 0 || S->Ragged != 0 ||
        (S->B != 0 && S->Rows != Total.Rows) ||
        (Total.Ragged != 0 && !S->isNumber()))
      return;
    Total.C /= S->C;
    Total.B -= S->B;
    Total.R -= S->R;
  }
  if (Total.B >= 0 && Total.R >= 0)
    C.assign(To[*Batch], Total);
}

/// Returns false if all sizes are known and the products differ for every
/// number of local rows.
static bool sameProduct(SizeContext &C, ArrayRef<DimId> X, ArrayRef<DimId> Y) {
  int64_t Product[2] = {1, 1};
  int Rows[2] = {0, 0};
  std::optional<uint16_t> Of;
  for (unsigned Side : {0, 1})
    for (DimId D : Side == 0 ? X : Y) {
      auto S = C.Table.sym(D);
      if (!S || S->R < 0 || S->Ragged != 0 ||
          (S->B != 0 && Of.value_or(S->Rows) != S->Rows) ||
          MulOverflow(Product[Side], S->C, Product[Side]))
        return true;
      Rows[Side] += S->B;
      if (S->B != 0)
        Of = S->Rows;
      for (int Power = 0; Power < S->R; ++Power)
        if (MulOverflow(Product[Side], int64_t(C.options().Replicas),
                        Product[Side]))
          return true;
    }
  return Rows[0] == Rows[1] && Product[0] == Product[1];
}

/// Drops the unknown sizes that are in both \p X and \p Y. The products of the
/// remaining sizes are still equal.
static void dropCommon(SizeContext &C, DimList &X, DimList &Y) {
  auto IsKnown = [&](DimId D) { return C.Table.isKnown(D); };
  if (all_of(X, IsKnown) || all_of(Y, IsKnown))
    return;
  X = C.factorsOf(X);
  Y = C.factorsOf(Y);
  for (size_t I = X.size(); I-- > 0;) {
    auto It = find_if(Y, [&](DimId D) {
      return !IsKnown(D) && C.Table.find(D) == C.Table.find(X[I]);
    });
    if (It == Y.end())
      continue;
    Y.erase(It);
    X.erase(X.begin() + I);
  }
}

/// Drops sizes of 1. Then unifies and drops the outermost sizes of \p X and
/// \p Y that are equal in the single-device step, and after them the innermost.
/// Both shapes have equally many elements, so equal sizes at the same end are
/// the same axis. Lists without unknown sizes are left to matchGroups().
static void matchEnds(SizeContext &C, DimList &X, DimList &Y) {
  auto IsSingle = [&](DimId D) { return C.Table.isOne(D); };
  erase_if(X, IsSingle);
  erase_if(Y, IsSingle);
  auto IsUnknown = [&](DimId D) { return C.Table.number(D) == UnknownSize; };
  if (none_of(X, IsUnknown) && none_of(Y, IsUnknown))
    return;
  auto IsOne = [&](DimId Mine, DimId Its) {
    int64_t Number = C.Table.number(Mine);
    if (Number <= 0 || Number != C.Table.number(Its))
      return false;
    C.sameByNumber(Mine, Its, {Mine, Its});
    return true;
  };
  while (!X.empty() && !Y.empty() && IsOne(X.front(), Y.front())) {
    X.erase(X.begin());
    Y.erase(Y.begin());
  }
  while (!X.empty() && !Y.empty() && IsOne(X.back(), Y.back())) {
    X.pop_back();
    Y.pop_back();
  }
  // If one list is now a single unknown size, that size is the product of the
  // other list.
  for (auto [Left, Other] : {std::pair(&X, &Y), std::pair(&Y, &X)})
    if (Left->size() == 1 && IsUnknown(Left->front()))
      if (auto Elements = C.elementsOf(*Other);
          Elements && Elements->isNumber() && Elements->C > 0)
        C.assignNumber(Left->front(), Elements->C);
}

/// Returns true if the sizes of \p X without \p OfX and those of \p Y without
/// \p OfY have the same product by definition. A reshape of X to Y then states
/// that OfX and OfY are equal:
///
///     [rows(x), 4] → [rows(y), 4]    states rows(x) = rows(y)
///     [rows(x), 4] → [rows(y), n]    does not
static bool haveSameRest(const SizeContext &C, ArrayRef<DimId> X, DimId OfX,
                         ArrayRef<DimId> Y, DimId OfY) {
  int64_t Numbers[2] = {1, 1};
  DimList Others[2];
  for (unsigned Side : {0, 1}) {
    bool Left = false;
    for (DimId D : Side == 0 ? X : Y) {
      if (!Left && D == (Side == 0 ? OfX : OfY)) {
        Left = true;
        continue;
      }
      int64_t Number =
          C.isFixed(D) && !C.Table.hasSym(D) ? C.Table.number(D) : UnknownSize;
      if (Number == UnknownSize)
        Others[Side].push_back(D);
      else if (MulOverflow(Numbers[Side], Number, Numbers[Side]))
        return false;
    }
  }
  return Numbers[0] == Numbers[1] && Others[0].size() == Others[1].size() &&
         all_of(zip(Others[0], Others[1]), [&](auto Pair) {
           return C.areEqualByDefinition(std::get<0>(Pair), std::get<1>(Pair));
         });
}

/// Finds the runs of axes of \p AllX and \p AllY with equal products, and
/// relates their sizes. Example: [2, 3, b] and [6, b] have the runs 2, 3 → 6
/// and b → b. Row-major order makes the runs unique, except for axes of size 1.
static void matchGroups(SizeContext &C, ArrayRef<DimId> AllX,
                        ArrayRef<DimId> AllY) {
  DimList X(AllX), Y(AllY);
  matchEnds(C, X, Y);
  dropCommon(C, X, Y);
  // If only the first size of Y is unknown, it is the product of X divided by
  // the other sizes of Y.
  auto IsKnown = [&](DimId D) { return C.Table.isKnown(D); };
  if (!X.empty() && !Y.empty() && all_of(X, IsKnown) && !IsKnown(Y.front()) &&
      all_of(ArrayRef(Y).drop_front(), IsKnown))
    spread(C, X, Y);
  auto AllNumbers = [&](ArrayRef<DimId> List) {
    return all_of(List, [&](DimId D) {
      return C.Table.number(D) != UnknownSize && C.Table.number(D) > 0;
    });
  };
  bool ByNumber = AllNumbers(X) && AllNumbers(Y);
  auto SizeOf = [&](DimId D) -> std::optional<Sym> {
    if (ByNumber)
      return Sym{C.Table.number(D), 0, 0};
    return C.Table.sym(D);
  };
  if (ByNumber && (C.Table.hasSymAny(X) || C.Table.hasSymAny(Y))) {
    auto Elements = [&](ArrayRef<DimId> List) {
      int64_t Product = 1;
      for (DimId D : List)
        Product = SaturatingMultiply<uint64_t>(Product, C.Table.number(D));
      return Product;
    };
    // X is empty if all its sizes are ones.
    if (Elements(X) != Elements(Y) && !Y.empty())
      C.report(X.empty() ? C.One : X.front(), Y.front());
  }
  size_t I = 0, J = 0;
  while (I < X.size() && J < Y.size()) {
    size_t I0 = I, J0 = J;
    auto SX = SizeOf(X[I++]), SY = SizeOf(Y[J++]);
    while (SX && SY && !(*SX == *SY)) {
      auto Less = [](const Sym &P, const Sym &Q) {
        return std::tuple(P.B, P.R, P.C) < std::tuple(Q.B, Q.R, Q.C);
      };
      bool GrowX = Less(*SX, *SY);
      if (GrowX ? I == X.size() : J == Y.size()) {
        if (!ByNumber && !sameProduct(C, X, Y))
          C.report(X.front(), Y.front());
        return;
      }
      auto Next = SizeOf(GrowX ? X[I++] : Y[J++]);
      Sym &Grown = GrowX ? *SX : *SY;
      if (!Next || !Grown.multiply(*Next))
        return;
    }
    if (!SX || !SY)
      return;
    ArrayRef<DimId> Left = ArrayRef(X).slice(I0, I - I0),
                    Right = ArrayRef(Y).slice(J0, J - J0);
    if (Left.size() == 1 && Right.size() == 1) {
      if (ByNumber) {
        DimList Sizes(X);
        append_range(Sizes, Y);
        C.sameByNumber(Left[0], Right[0], Sizes);
      } else if (SX->isNumber()) {
        C.sameByNumber(Left[0], Right[0], {Left[0], Right[0]});
      } else if (haveSameRest(C, AllX, Left[0], AllY, Right[0])) {
        C.same(Left[0], Right[0]);
      } else {
        C.alias(Left[0], Right[0]);
      }
    } else {
      // The batch axis may be any of the old sizes if there is one new size.
      // Among the new sizes it must be the outermost.
      spread(C, Left, Right, /*Anywhere=*/true);
      spread(C, Right, Left);
    }
  }
}

/// Relates the row counts of \p X and \p Y, which have equally many elements.
/// If only a constant claims the rows of a size, that size must be the
/// outermost one, where the batch axis is.
static void sameElements(SizeContext &C, ArrayRef<DimId> X, ArrayRef<DimId> Y) {
  auto IsSame = [&](DimId Mine, DimId Its) {
    auto S = C.Table.sym(Mine);
    return S && S == C.Table.sym(Its);
  };
  while (!X.empty() && !Y.empty() && IsSame(X.front(), Y.front())) {
    X = X.drop_front();
    Y = Y.drop_front();
  }
  while (!X.empty() && !Y.empty() && IsSame(X.back(), Y.back())) {
    X = X.drop_back();
    Y = Y.drop_back();
  }
  auto IsClaim = [&](DimId D) {
    auto S = C.Table.sym(D);
    return S && !C.Table.isOfSplit(*S);
  };
  if (X.empty() || Y.empty() || any_of(X.drop_front(), IsClaim) ||
      any_of(Y.drop_front(), IsClaim))
    return;
  auto Mine = C.elementsOf(X), Its = C.elementsOf(Y);
  if (Mine && Its)
    C.relate(*Mine, *Its);
}

/// Returns k if the size at \p Wild of \p List is N^k times as large in the
/// single-device step as on a replica. That size is the number of elements of
/// \p X divided by the other sizes. All replicas have equally many elements, so
/// the quotient is equal on all replicas, or the op fails on all replicas.
static std::optional<int> powerLeft(const SizeContext &C, ArrayRef<DimId> X,
                                    ArrayRef<DimId> List, int Wild) {
  int Power = 0;
  auto Add = [&](DimId D, int Sign) {
    auto Its = C.Table.globalPower(D);
    Power += Sign * Its.value_or(0);
    return Its.has_value();
  };
  if (!all_of(X, [&](DimId D) { return Add(D, 1); }))
    return std::nullopt;
  for (auto [I, D] : enumerate(List))
    if (int(I) != Wild && !Add(D, -1))
      return std::nullopt;
  return Power;
}

/// Returns true if N may divide \p Size, a size of the single-device step.
static bool mayBeShared(const SizeContext &C, DimId Size) {
  int64_t Number = C.Table.number(Size);
  return Number == UnknownSize || Number % C.Known.replicas() == 0;
}

/// Returns true if the size at \p Wild of \p List is an integer for every
/// number of local rows. That size is the number of elements of \p X divided by
/// the other sizes. Unknown sizes must cancel out.
static bool leavesWhole(const SizeContext &C, ArrayRef<DimId> X,
                        ArrayRef<DimId> List, int Wild) {
  DimList Others(List.begin(), List.end());
  Others.erase(Others.begin() + Wild);
  DimList Mine = C.factorsOf(X);
  Sym All, Rest;
  for (DimId D : C.factorsOf(Others)) {
    auto *It = find_if(Mine, [&, Its = D](DimId Of) {
      return C.Table.find(Of) == C.Table.find(Its);
    });
    if (It != Mine.end())
      Mine.erase(It);
    else if (auto S = C.Table.sym(D); !S || !Rest.multiply(*S))
      return false;
  }
  for (DimId D : Mine)
    if (auto S = C.Table.sym(D); S && !All.multiply(*S))
      return false;
  return Rest.C > 0 && All.C % Rest.C == 0 && All.B >= Rest.B &&
         All.R >= Rest.R && (Rest.B == 0 || All.Rows == Rest.Rows);
}

/// Requires that \p X and \p Y have equally many elements on a replica. No
/// other check finds a difference if the batch axis is not outermost in Y.
static void requireElements(SizeContext &C, ArrayRef<DimId> X,
                            ArrayRef<DimId> Y) {
  std::array<int64_t, 2> Product = {1, 1};
  std::optional<DimId> OfRows;
  for (unsigned Side : {0, 1})
    for (DimId D : Side == 0 ? X : Y) {
      int64_t Number = C.Known.localNumber(D);
      if (Number < 0 || MulOverflow(Product[Side], Number, Product[Side]))
        return;
      if (C.Table.hasSym(D))
        OfRows = D;
    }
  if (OfRows)
    C.require(Product[0] == Product[1], *OfRows,
              "reshapes to another number of elements than a replica has");
}

/// Assigns the size at \p Wild of \p List its number if all other sizes and
/// those of \p X have one. matchGroups() can then find the batch axis by the
/// numbers, before that size has a symbol.
static bool fillNumber(SizeContext &C, ArrayRef<DimId> X, ArrayRef<DimId> List,
                       int Wild) {
  int64_t All = 1, Rest = 1;
  auto Multiply = [&](int64_t &Product, DimId D) {
    int64_t Number = C.Table.number(D);
    return Number > 0 && !MulOverflow(Product, Number, Product);
  };
  for (DimId D : X)
    if (!Multiply(All, D))
      return false;
  for (auto [I, D] : enumerate(List))
    if (int(I) != Wild && !Multiply(Rest, D))
      return false;
  if (All % Rest != 0)
    return false;
  C.assignNumber(List[Wild], All / Rest);
  return true;
}

/// Handles a reshape of [steps * rows, ...] to [-1, 8, ...] for a batch of 8
/// rows: unifies 8 with the rows. Without this, each replica would form groups
/// of 8 rows instead of groups of its own rows. Both are 8 in the single-device
/// step, and the type rule checks which axis has the rows. The gradient of a
/// reshape contains this reshape if only the number of steps is unknown.
static void matchSteps(SizeContext &C, ArrayRef<DimId> X, ArrayRef<DimId> List,
                       int Wild) {
  if (Wild != 0 || List.size() < 2 || X.empty())
    return;
  DimList Of = C.factorsOf(X.front());
  int64_t Rows = C.Table.number(Of.back());
  if (Of.size() > 1 && C.Table.hasSym(Of.back()) &&
      !C.Table.hasSymAny(ArrayRef(Of).drop_back()) && Rows != UnknownSize &&
      Rows == C.Table.number(List[1]))
    C.same(List[1], Of.back());
}

static void reshape(SizeContext &C) {
  Dims V = C.val(1);
  if (!V)
    return;
  Dims X = C.in(0);
  DimList List;
  int Wild = -1;
  for (size_t I = 0; I < V->size(); ++I) {
    if (C.Table.number((*V)[I]) == -1) {
      Wild = static_cast<int>(I);
      List.push_back(C.slot(I));
    } else {
      List.push_back((*V)[I]);
    }
  }
  // The sizes of an empty tensor, besides the 0, imply nothing.
  if (X && any_of(*X, [&](DimId D) {
        return C.Table.number(D) == 0 && !C.Table.hasSym(D);
      })) {
    if (Wild >= 0 &&
        none_of(List, [&](DimId D) { return C.Table.number(D) == 0; }))
      C.assignNumber(List[Wild], 0);
    C.setShape(0, List);
    return;
  }
  if (Wild >= 0 && X) {
    if (fillNumber(C, *X, List, Wild)) {
      matchGroups(C, *X, List);
    } else {
      DimList Mine(*X), Its(List);
      matchSteps(C, Mine, Its, Wild);
      matchEnds(C, Mine, Its);
    }
    DimId All = C.One, Rest = C.One;
    for (size_t I = 0; I < X->size(); ++I)
      All = C.product(64 + I, All, (*C.in(0))[I]);
    for (size_t I = 0; I < List.size(); ++I)
      if (int(I) != Wild)
        Rest = C.product(96 + I, Rest, List[I]);
    DimId Size = C.quotient(63, All, Rest);
    // (If Wild is not the outermost axis, a number in an unpatched graph may
    // still prove to be the batch size.)
    auto Power = powerLeft(C, *C.in(0), List, Wild);
    if (Power == 0)
      C.Table.markSame(Size);
    else if (Power == 1 && mayBeShared(C, List[Wild]) &&
             (Wild == 0 ||
              (!C.options().Unpatched && leavesWhole(C, *C.in(0), List, Wild))))
      C.Table.markRows(Size);
    // If X and List have different powers of the batch size, the number in the
    // single-device step is not the number on a replica.
    bool OfRows = C.Table.hasSymAny(*C.in(0)) || C.Table.hasSymAny(List);
    if (!OfRows || C.options().Unpatched || C.Table.isSame(Size) ||
        C.Table.isKnown(Size))
      C.unify(List[Wild], Size);
    List[Wild] = Size;
  }
  C.setShape(0, List);
  if (!X)
    return;
  sameElements(C, *C.in(0), List);
  matchGroups(C, *C.in(0), List);
  if (Wild < 0)
    requireElements(C, *C.in(0), List);
}

static void expandDims(SizeContext &C) {
  Dims X = C.in(0);
  auto Number = C.num(1);
  auto Axis =
      X && Number ? axisIn(*Number, int64_t(X->size()) + 1) : std::nullopt;
  if (!Axis)
    return;
  DimList List(X->begin(), X->end());
  List.insert(List.begin() + *Axis, C.One);
  C.setShape(0, List);
}

/// Returns true if \p Size follows the batch and may be 1 on a replica.
static bool mayBeOneRow(const SizeContext &C, DimId Size) {
  return C.Known.replicas() > 1 && C.Table.hasSym(Size) &&
         C.Known.mayBeOneRow(Size);
}

static void squeeze(SizeContext &C) {
  Dims X = C.in(0);
  if (!X)
    return;
  auto Listed = C.intListAttr("squeeze_dims");
  bool Named = Listed && !Listed->empty();
  auto Axes = Named ? axesIn(*Listed, int64_t(X->size())) : std::nullopt;
  if (Named && !Axes)
    return;
  DimList List;
  for (unsigned I = 0; I < X->size(); ++I) {
    bool Drop = Axes ? Axes->test(I) : C.Table.isOne((*X)[I]);
    if (!Named && (!C.Table.isKnown((*X)[I]) || mayBeOneRow(C, (*X)[I])))
      return;
    if (!Drop)
      List.push_back((*X)[I]);
  }
  C.setShape(0, List);
}

static void transpose(SizeContext &C) {
  Dims X = C.in(0);
  auto Perm = C.nums(1);
  if (!X || !Perm || !isPermutation(*Perm, X->size()))
    return;
  DimList List;
  for (int64_t P : *Perm)
    List.push_back((*X)[P]);
  C.setShape(0, List);
}

static void tile(SizeContext &C) {
  Dims X = C.in(0), M = C.val(1);
  if (!X || !M || M->size() != X->size())
    return;
  DimList List;
  for (size_t I = 0; I < X->size(); ++I)
    List.push_back(C.product(I, (*C.in(0))[I], (*C.val(1))[I]));
  C.setShape(0, List);
  // If a fixed number of rows is tiled to the rows of the batch, the repeat
  // count follows the batch size.
  if (!C.options().Unpatched)
    return;
  for (size_t I = 0; I < List.size(); ++I) {
    DimId Times = (*C.val(1))[I];
    int64_t Rows = C.plainNumber((*C.in(0))[I]);
    auto All = C.Table.sym((*C.out(0))[I]);
    if (Rows > 1 && All && All->isLocal() && !C.Table.hasSym(Times) &&
        All->Ragged == 0 && All->C % Rows == 0) {
      All->C /= Rows;
      C.assign(Times, *All);
    }
  }
}

static void broadcastTo(SizeContext &C) {
  if (Dims V = C.val(1)) {
    C.setShape(0, *V);
    if (Dims X = C.in(0); X && X->size() <= V->size())
      C.sameRows(*X, C.val(1)->take_back(X->size()), X->size());
  }
}

} // namespace sizes

namespace values {

/// Tracks a reshape of a matrix to a vector, row by row, or the reverse.
static void reshape(SizeContext &C) {
  Dims S = C.out(0);
  if (Dims X = C.elements(0); X && S && S->size() <= 2)
    C.setValue(0, *X);
}

/// Tracks a transposed matrix: the elements of the operand by column.
static void transpose(SizeContext &C) {
  Dims X = C.elements(0), S = C.in(0);
  auto Perm = C.nums(1);
  if (!X || !S || S->size() != 2 || !Perm || Perm->size() != 2 ||
      (*Perm)[0] != 1 || (*Perm)[1] != 0)
    return;
  int64_t Rows = C.plainNumber((*S)[0]), Columns = C.plainNumber((*S)[1]);
  auto Size = static_cast<int64_t>(X->size());
  if (Rows <= 0 || Columns <= 0 || Rows > Size || Columns > Size ||
      Rows * Columns != Size)
    return;
  DimList List;
  for (int64_t Column = 0; Column < Columns; ++Column)
    for (int64_t Row = 0; Row < Rows; ++Row)
      List.push_back((*X)[Row * Columns + Column]);
  C.setValue(0, List);
}

static void fill(SizeContext &C) {
  Dims V = C.val(1);
  auto Count = C.nums(0);
  if (!V || V->size() != 1 || !Count || Count->size() > 1)
    return;
  size_t Size = Count->empty() ? 1 : static_cast<size_t>((*Count)[0]);
  if (Size <= 64)
    C.setValue(0, DimList(Size, (*V)[0]));
}

} // namespace values

namespace {

/// Returns true if axis \p Axis of \p Out merges axis \p Axis of \p In with
/// axes after it. The merged sizes need not be known. All other axes must be
/// equal.
bool mergesRows(const TypeContext &C, ArrayRef<DimId> In, ArrayRef<DimId> Out,
                unsigned Axis) {
  if (In.size() < Out.size() || Axis >= Out.size() ||
      C.D.table().isSame(Out[Axis]))
    return false;
  auto IsSame = [&](auto Pair) {
    auto [X, Y] = Pair;
    return C.D.table().isEqual(X, Y);
  };
  size_t After = Out.size() - Axis - 1;
  return all_of(zip(In.take_front(Axis), Out.take_front(Axis)), IsSame) &&
         all_of(zip(In.take_back(After), Out.take_back(After)), IsSame);
}

/// Returns true if the node at hand is a Reshape that restores the shape of a
/// broadcast operand with \p Rows rows, after a sum over the unknown broadcast
/// axes.
bool restoresAxes(const TypeContext &C, DimId Rows) {
  NodeId Sum = through(C.G, C.input(0), op::Identity, ScaleOp).Node;
  if (!C.isOp(op::Reshape) || !types::keepsFirstAxis(C, Sum))
    return false;
  DimId Summed = C.D.shape(C.G.input(Sum, 0))->front();
  return C.D.table().isEqual(Summed, Rows);
}

/// Returns true if the node at hand is a Squeeze of all axes of size 1 that may
/// drop the sharded axis \p Axis on a replica with a single row.
bool dropsOnlyRow(const TypeContext &C, unsigned Axis) {
  if (!C.isOp(op::Squeeze) || C.D.replicas() == 1)
    return false;
  auto Axes = C.intListAttr("squeeze_dims");
  if (Axes && !Axes->empty())
    return false;
  auto Shape = C.shape(0);
  if (!Shape || Axis >= Shape->size())
    return true;
  return C.D.mayBeOneRow((*Shape)[Axis]);
}

/// A product of sizes: the product of the known sizes, and a sorted list of the
/// unknown sizes.
struct Product {
  Sym Known;
  SmallVector<DimId, 4> Others;
  bool operator==(const Product &O) const = default;
};

/// Returns the product of \p Dims; none if it cannot be compared.
std::optional<Product> productOf(const TypeContext &C, ArrayRef<DimId> Dims) {
  Product Result;
  for (DimId Dim : Dims) {
    auto S = C.D.table().sym(Dim);
    if (!S)
      Result.Others.push_back(C.D.table().find(Dim));
    else if (!Result.Known.multiply(*S))
      return std::nullopt;
  }
  sort(Result.Others);
  return Result;
}

/// Returns true if \p In and \p Out, the sizes before an axis, have equal
/// products.
bool haveEqualLeads(const TypeContext &C, ArrayRef<DimId> In,
                    ArrayRef<DimId> Out) {
  auto Before = productOf(C, In), After = productOf(C, Out);
  return Before && After && *Before == *After;
}

/// Returns false if a Reshape makes a size, other than that of axis \p Rows,
/// that may differ between a replica and the single-device step. Example:
///
///     [b, 4] → [b, 8 / b]        8: the elements of the whole batch
bool hasGlobalSizes(const TypeContext &C, ArrayRef<DimId> In,
                    ArrayRef<DimId> Out, unsigned Rows) {
  if (!C.isOp(op::Reshape))
    return true;
  const DimTable &Table = C.D.table();
  auto Shape = C.D.value(C.input(1));
  for (size_t I = 0; I < Out.size(); ++I) {
    bool IsRest =
        Shape && Shape->size() == Out.size() && Table.number((*Shape)[I]) == -1;
    if (I != Rows && !IsRest && !Table.isSame(Out[I]) &&
        none_of(In, [&](DimId Size) { return Table.isEqual(Size, Out[I]); }))
      return false;
  }
  return true;
}

/// Infers the type of a Reshape that merges axes of known sizes with the rows
/// after them. The result has blocks of local rows, as a concatenation has.
///
///     [3, b, k] → [3 * b, k]
std::optional<ReplicationType> joinsBlocks(TypeContext &C, ReplicationType X,
                                           ArrayRef<DimId> In,
                                           ArrayRef<DimId> Out) {
  int Axis = C.D.batchAxis(C.out());
  auto Rows = Axis < 0 ? std::nullopt : C.D.table().sym(Out[Axis]);
  if (!Rows || !Rows->isLocal() || Rows->B != 1 || Rows->Ragged != 0)
    return std::nullopt;
  for (unsigned First = X.Axis; First > 0; --First) {
    auto Blocks = C.blocksOf(In.slice(First - 1, X.Axis - (First - 1)));
    if (!Blocks)
      return std::nullopt;
    if (*Blocks == 1 ||
        !haveEqualLeads(C, In.take_front(First - 1), Out.take_front(Axis)))
      continue;
    if (Rows->C % *Blocks != 0)
      return std::nullopt;
    Sym Each = *Rows;
    Each.C /= *Blocks;
    auto All = C.D.table().sym(In[X.Axis]);
    // If the rows are already concatenated, each block must have all the rows.
    if (X.isJoined() && !(All && *All == Each))
      return std::nullopt;
    ReplicationType Type = ReplicationType::sharded(Axis, X.K);
    Type.Zero = X.Zero;
    Type.Order = *C.orderBehind(In.slice(First - 1, X.Axis - (First - 1)), Each,
                                X.Order);
    return Type;
  }
  return std::nullopt;
}

/// Infers the type of a Reshape that merges an unknown number of steps with the
/// rows after them.
///
///     [t, b, k] → [t * b, k]
std::optional<ReplicationType> joinsSteps(TypeContext &C, ReplicationType X,
                                          ArrayRef<DimId> In,
                                          ArrayRef<DimId> Out) {
  auto Each = C.D.table().sym(In[X.Axis]);
  auto Behind = productOf(C, In.drop_front(X.Axis + 1));
  if (X.Axis != 1 || X.isJoined() || C.D.batchAxis(C.out()) != 0 || !Each ||
      !Each->isLocal() || Each->Ragged != 0 || !Behind ||
      Behind != productOf(C, Out.drop_front(1)))
    return std::nullopt;
  auto Order = C.orderBehind(In.take_front(1), *Each, X.Order);
  if (!Order)
    return std::nullopt;
  ReplicationType Type = ReplicationType::sharded(0, X.K);
  Type.Zero = X.Zero;
  Type.Order = *Order;
  return Type;
}

/// Infers the type of a Reshape that reverses the merge of joinsSteps().
std::optional<ReplicationType> splitsSteps(TypeContext &C, ReplicationType X,
                                           ArrayRef<DimId> In,
                                           ArrayRef<DimId> Out) {
  ArrayRef Parts = C.partsOf(X);
  const DimTable &Table = C.D.table();
  if (Parts.size() != 1 || Parts[0].Size == 0 || X.Axis != 0 ||
      Out.size() < 2 || Table.find(Out[0]) != Parts[0].Size ||
      Table.sym(Out[1]) != Parts[0].Rows)
    return std::nullopt;
  auto Behind = productOf(C, In.drop_front(1));
  if (!Behind || Behind != productOf(C, Out.drop_front(2)))
    return std::nullopt;
  ReplicationType Type = ReplicationType::sharded(1, X.K);
  Type.Zero = X.Zero;
  Type.Order = Parts[0].Order;
  return Type;
}

/// Infers the type of a Reshape that reverses the merge of joinsBlocks().
std::optional<ReplicationType> splitsBlocks(TypeContext &C, ReplicationType X,
                                            ArrayRef<DimId> In,
                                            ArrayRef<DimId> Out) {
  int Axis = C.D.batchAxis(C.out());
  ArrayRef Parts = C.partsOf(X);
  if (Axis < 1 || Parts.size() < 2 || !all_equal(Parts) ||
      Parts.front().Size != 0 ||
      !haveEqualLeads(C, In.take_front(X.Axis), Out.take_front(Axis - 1)) ||
      C.D.table().hasSym(Out[Axis - 1]) ||
      C.D.table().number(Out[Axis - 1]) != int64_t(Parts.size()))
    return std::nullopt;
  uint32_t Order = Parts.front().Order;
  auto Rows = C.D.table().sym(Out[Axis]);
  if (Order != ReplicationType::InOrder &&
      !(Rows && *Rows == Parts.front().Rows))
    return std::nullopt;
  ReplicationType Type = ReplicationType::sharded(Axis, X.K);
  Type.Zero = X.Zero;
  Type.Order = Order;
  return Type;
}

/// Infers where a Reshape, Transpose, Squeeze or ExpandDims moves the batch
/// axis. Rows stay whole if the sizes before the batch axis have equal products
/// in the operand and in the result.
ReplicationType relayoutType(TypeContext &C) {
  ReplicationType X = C.operand(0);
  if (X.isVarying())
    return C.varyingLike(X);
  // Sizes are tracked in scalars and vectors; elsewhere they are numbers.
  if (X.Symbolic && !C.D.value(C.out()))
    if (ReplicationType Number = C.Types.number(C.input(0));
        !Number.isVarying())
      X = Number;
  if (C.numData() > 1 && !C.operand(1).isTrue()) {
    // An absent contribution becomes zeros of the shape in operand 1.
    if (X.isNothing())
      X.Order = ReplicationType::InOrder;
    // Only a sharded tensor can be reshaped to sizes that follow the batch.
    bool Fits = C.isSize(1) && C.isOp(op::Reshape);
    if (!Fits || (!X.isSharded() && C.localAxis(C.out()) != -1))
      return C.varying("takes a shape that differs per replica");
  }
  if (!X.isSharded())
    return X;
  auto Moved = [&](int Axis) {
    ReplicationType Rows = ReplicationType::sharded(Axis, X.K);
    Rows.Zero = X.Zero;
    return Rows;
  };
  auto In = C.shape(0), Out = C.D.shape(C.out());
  if (dropsOnlyRow(C, X.Axis))
    return C.varying("drops the batch axis where a replica has one row");
  if (!In && Out && !Out->empty() && X.Axis == 0 && !X.isJoined() &&
      restoresAxes(C, Out->front()))
    return X;
  if (!In || !Out)
    return C.varying("reshapes the batch axis in an unknown way");
  if (C.isOp(op::Transpose) || C.isOp(op::ConjugateTranspose)) {
    auto Perm = C.numbers(1);
    if (!Perm || !isPermutation(*Perm, In->size()))
      return C.varying("permutes axes in an unknown order");
    return Moved(static_cast<int>(find(*Perm, X.Axis) - Perm->begin()));
  }
  int Axis = C.D.batchAxis(C.out());
  // After concatenated rows are split, or merged with another axis, the row
  // order is not known.
  auto Regrouped = [&](int Axis) {
    ReplicationType Rows = Moved(Axis);
    if (!C.isOp(op::Reshape))
      return Rows;
    if (C.D.table().isEqual((*In)[X.Axis], (*Out)[Axis]))
      Rows.Order = X.Order;
    else if (X.isJoined())
      return C.varying(
          "splits or merges rows that were concatenated along the batch axis");
    return Rows;
  };
  if (C.isOp(op::Reshape) && X.isJoined()) {
    if (auto Type = splitsBlocks(C, X, *In, *Out))
      return *Type;
    if (auto Type = splitsSteps(C, X, *In, *Out))
      return *Type;
  }
  if (Axis >= 0 &&
      haveEqualLeads(C, In->take_front(X.Axis), Out->take_front(Axis)) &&
      hasGlobalSizes(C, *In, *Out, Axis))
    return Regrouped(Axis);
  if (C.isOp(op::Reshape)) {
    if (mergesRows(C, *In, *Out, X.Axis))
      return Regrouped(X.Axis);
    if (auto Type = joinsBlocks(C, X, *In, *Out))
      return *Type;
    if (auto Type = joinsSteps(C, X, *In, *Out))
      return *Type;
  }
  return C.varying(
      "reshapes so that the rows of a replica are no longer contiguous");
}

} // namespace

namespace types {

static void relayout(TypeContext &C) { C.setAll(relayoutType(C)); }

/// Types a Bitcast, which may add or drop the last axis.
static void bitcast(TypeContext &C) {
  C.plain(0).isSharded() && C.rank(0) < 2 ? whole(C) : perExample(C);
}

static bool relayoutIndices(TypeContext &C) {
  ReplicationType First = C.operand(0);
  if (First.Indices == LocalIndices::RowNumbers)
    return moveNumbers(C, relayoutType);
  if (First.isDistinct())
    return reshapeDistinct(C);
  if (First.isOfEntries())
    return entryAxes(C);
  if (First.Indices == LocalIndices::IndexRows) {
    auto Order = C.isOp(op::Transpose) ? C.numbers(1) : std::nullopt;
    if (!Order || *Order != ArrayRef<int64_t>{1, 0} || First.Axis != 1)
      return false;
    First.Axis = 0;
    C.setAll(First, LocalIndices::RowIndices);
    return true;
  }
  // Accept only a reshape of accidental hits to a vector or a column, which
  // keeps the elements in order.
  if (!First.isOfHits() || First.Indices == LocalIndices::HitIndices ||
      !C.isOp(op::Reshape) || !C.operand(1).isTrue())
    return false;
  auto Shape = C.numbers(1);
  if (!Shape || Shape->empty() || (*Shape)[0] != -1 ||
      !(Shape->size() == 1 || (Shape->size() == 2 && (*Shape)[1] == 1)))
    return false;
  C.setAll(First, First.Indices);
  return true;
}

void ensureShape(TypeContext &C) {
  ReplicationType X = C.operand(0);
  auto Shape = C.shapeAttr("shape");
  auto Is = C.D.shape(C.out());
  if (X.isSharded() && Shape && X.Axis < Shape->Dims.size() &&
      Shape->Dims[X.Axis] >= 0 &&
      !(Is && C.D.localNumber((*Is)[X.Axis]) == Shape->Dims[X.Axis]))
    X = C.varying("checks the size of the whole batch");
  C.setAll(X);
}

} // namespace types

namespace {

using namespace trait;

constexpr OpRule Relayout = {.Type = types::relayout,
                             .LocalIndices = types::relayoutIndices,
                             .Is = KeepsZeros | KeepsRowOrder | LinearInFirst |
                                   RegroupsRows | KeepsRows};
constexpr OpRule Tile = {.Type = types::tile,
                         .LocalIndices = types::tileIndices,
                         .Is = KeepsZeros | NotOfTrue,
                         .SizeOperands = operands(1),
                         .LengthOperands = operands(1)};

} // namespace

ArrayRef<OpRule> families::reshape() {
  static const OpRule Rules[] = {
      {.Op = op::Bitcast, .Type = types::bitcast},
      entry(op::Reshape, Relayout,
            {.Sizes = sizes::reshape,
             .Values = values::reshape,
             .Is = ComparesSizes | ComparesWithSizes | OrdersRows,
             .SizeOperands = operands(1),
             .LengthOperands = operands(1),
             .ComparedOperands = operands(0)}),
      entry(op::ExpandDims, Relayout,
            {.Sizes = sizes::expandDims,
             .Values = values::same,
             .SizeOperands = operands(1)}),
      entry(op::Squeeze, Relayout,
            {.Sizes = sizes::squeeze, .Values = values::same}),
      entry(op::Transpose, Relayout,
            {.Sizes = sizes::transpose,
             .Values = values::transpose,
             .SizeOperands = operands(1)}),
      entry(op::ConjugateTranspose, Relayout,
            {.Sizes = sizes::transpose, .SizeOperands = operands(1)}),
      {.Op = op::Fill,
       .Sizes = sizes::fromSizes<0>,
       .Values = values::fill,
       .Type = types::fill,
       .Is = KeepsZeros | NotOfTrue,
       .SizeOperands = operands(0),
       .LengthOperands = operands(0)},
      entry(op::Tile, Tile, {.Sizes = sizes::tile}),
      entry(op::BroadcastTo, Tile, {.Sizes = sizes::broadcastTo}),
  };
  return Rules;
}

} // namespace graft
