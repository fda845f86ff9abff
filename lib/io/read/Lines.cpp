//===- lib/io/read/Lines.cpp - the text form of a graph ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/io/read/Lines.h"

#include "lib/graph/ProgramAttrs.h"
#include "lib/io/AttrText.h"
#include "lib/io/LineForm.h"
#include "lib/io/read/Read.h"
#include "lib/ops/Ops.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace graft {
namespace {

bool isBlank(char C) { return C == ' ' || C == '\t' || C == '\r'; }

class LineReader {
public:
  LineReader(StringRef Text, tensorflow::GraphDef &Graph) : Rest(Text) {
    this->Graph = &Graph;
  }

  bool read();

  const char *place() const { return Rest.data(); }
  const std::string &error() const { return Fault; }
  /// The name and the place of each node.
  std::vector<std::pair<std::string, const char *>> Nodes;

private:
  bool fail(StringRef Message) {
    if (Fault.empty())
      Fault = Message.str();
    return false;
  }
  bool consume(char C) {
    skip();
    if (!Rest.starts_with(StringRef(&C, 1)))
      return false;
    Rest = Rest.drop_front();
    return true;
  }
  void skip();
  bool skipToNode();
  bool readName(std::string &Name, StringRef What);
  bool readNode(tensorflow::NodeDef &Node);
  bool readCopies(tensorflow::NodeDef &Node);
  bool readInputs(tensorflow::NodeDef &Node);
  bool readAttrs(tensorflow::NodeDef &Node);
  bool readAttr(tensorflow::NodeDef &Node, int TensorType);
  int tensorType() const;
  bool checkMarks();

  /// The numbers of replicas after ops, and their places.
  std::vector<std::pair<StringRef, const char *>> Marks;
  StringRef Rest;
  tensorflow::GraphDef *Graph;
  std::string Fault;
};

/// Skips blanks, and the end of a line if the next line continues it.
void LineReader::skip() {
  for (;;) {
    Rest = Rest.drop_while(isBlank);
    if (Rest.starts_with("#"))
      Rest = Rest.drop_until([](char C) { return C == '\n'; });
    if (!Rest.starts_with("\n"))
      return;
    StringRef Next = Rest.drop_front();
    StringRef Text = Next.drop_while(isBlank);
    if (Text.data() == Next.data() || Text.empty() || Text[0] == '\n')
      return;
    Rest = Text;
  }
}

/// Skips empty lines and comments. Returns false at the end of the text.
bool LineReader::skipToNode() {
  for (;;) {
    Rest = Rest.drop_while([](char C) { return isBlank(C) || C == '\n'; });
    if (!Rest.starts_with("#"))
      return !Rest.empty();
    Rest = Rest.drop_until([](char C) { return C == '\n'; });
  }
}

bool LineReader::readName(std::string &Name, StringRef What) {
  skip();
  if (Rest.starts_with("\"")) {
    AttrTextReader Quoted(Rest);
    bool Valid = Quoted.readQuoted(Name);
    Rest = Quoted.rest();
    return Valid || fail(Quoted.error());
  }
  StringRef Bare = Rest.take_until(LineForm::endsName);
  if (Bare.empty())
    return fail(("expected " + What).str());
  Name = Bare.str();
  Rest = Rest.drop_front(Bare.size());
  return true;
}

/// Reads the mark of a per-replica node: '*', or '*' and the number of
/// replicas.
bool LineReader::readCopies(tensorflow::NodeDef &Node) {
  const char *At = Rest.data();
  if (!Rest.consume_front("*"))
    return true;
  StringRef Number = Rest.take_while(isDigit);
  if (!Number.empty())
    Marks.push_back({Number, At});
  Rest = Rest.drop_front(Number.size());
  (*Node.mutable_attr())[CopiesAttr.str()].set_s("per-replica");
  return true;
}

bool LineReader::readInputs(tensorflow::NodeDef &Node) {
  if (!consume('('))
    return fail("expected '(' after the op");
  if (consume(')'))
    return true;
  do {
    std::string Name, Control = consume('^') ? "^" : "";
    if (!readName(Name, "an input"))
      return false;
    Node.add_input(Control + Name);
  } while (consume(','));
  return consume(')') || fail("expected ',' or ')'");
}

bool LineReader::readAttr(tensorflow::NodeDef &Node, int TensorType) {
  StringRef Before = Rest;
  std::string Key;
  if (!readName(Key, "an attribute: key=value"))
    return false;
  if (!consume('='))
    return fail("expected '=' after the key of an attribute");
  if (Node.attr().contains(Key)) {
    Rest = Before;
    return fail("the attribute '" + Key + "' is given twice");
  }
  AttrTextReader Value(Rest);
  bool Valid =
      Value.read((*Node.mutable_attr())[Key], {Node.op(), Key, TensorType});
  Rest = Value.rest();
  return Valid || fail(Value.error());
}

/// Returns the type that the attribute `dtype` of the node gives to its
/// tensors, or 0. The attribute may come after the tensors.
int LineReader::tensorType() const {
  LineReader Ahead(Rest, *Graph);
  for (;;) {
    Ahead.skip();
    if (Ahead.Rest.empty() || Ahead.Rest.starts_with("\n"))
      return 0;
    if (Ahead.Rest.consume_front("dtype=")) {
      AttrTextReader Type(Ahead.Rest);
      tensorflow::AttrValue Value;
      return Type.read(Value, {op::Const, "dtype"}) ? Value.type() : 0;
    }
    bool InQuotes = false, Escaped = false;
    Ahead.Rest = Ahead.Rest.drop_while([&](char C) {
      if (C == '\n' || (isBlank(C) && !InQuotes))
        return false;
      InQuotes ^= C == '"' && !Escaped;
      Escaped = C == '\\' && !Escaped;
      return true;
    });
  }
}

bool LineReader::readAttrs(tensorflow::NodeDef &Node) {
  int TensorType = tensorType();
  for (;;) {
    if (!Rest.empty() && !isBlank(Rest[0]) && Rest[0] != '\n' &&
        !isBlank(Rest.data()[-1]))
      return fail("expected a space");
    skip();
    if (Rest.empty() || Rest.starts_with("\n"))
      break;
    if (Rest.consume_front("!")) {
      AttrTextReader Others(Rest);
      std::string Bytes;
      bool Valid = Others.readQuoted(Bytes);
      Rest = Others.rest();
      if (!Valid)
        return fail(Others.error());
      tensorflow::NodeDef Fields;
      if (!Fields.ParseFromString(Bytes))
        return fail("these are not the bytes of a NodeDef");
      if (!Fields.name().empty() || !Fields.op().empty() ||
          Fields.input_size() || !Fields.device().empty() || Fields.attr_size())
        return fail("these bytes have fields that the line has, too");
      Node.MergeFrom(Fields);
      continue;
    }
    if (!readAttr(Node, TensorType))
      return false;
  }
  Rest = Rest.drop_until([](char C) { return C == '\n'; });
  return true;
}

bool LineReader::readNode(tensorflow::NodeDef &Node) {
  if (Rest.starts_with("---"))
    return fail("expected '--- GraphDef' or '--- MetaGraphDef' at the "
                "beginning of a line");
  if (!readName(*Node.mutable_name(), "the name of a node"))
    return false;
  if (!consume('='))
    return fail("expected '=' after the name of the node");
  if (!readName(*Node.mutable_op(), "an op") || !readCopies(Node) ||
      !readInputs(Node))
    return false;
  if (consume('@') && !readName(*Node.mutable_device(), "a device"))
    return false;
  return readAttrs(Node);
}

bool LineReader::read() {
  while (skipToNode()) {
    const char *At = Rest.data();
    tensorflow::NodeDef &Node = *Graph->add_node();
    if (!readNode(Node))
      return false;
    Nodes.emplace_back(Node.name(), At);
  }
  return checkMarks();
}

/// Checks that the marks of per-replica nodes have the number of replicas of
/// the mesh.
bool LineReader::checkMarks() {
  std::optional<int64_t> Replicas = meshReplicas(*Graph);
  for (auto [Number, At] : Marks) {
    int64_t Value;
    if (Replicas && (Number.getAsInteger(10, Value) || Value != *Replicas)) {
      Rest = StringRef(At, 0);
      return fail(("'*" + Number + "' is not the number of replicas of the " +
                   "mesh, " + Twine(*Replicas))
                      .str());
    }
  }
  return true;
}

/// Finds the lines and columns of places, in ascending order.
class Places {
public:
  explicit Places(StringRef Text) : At(Text.data()), Begin(At) {}

  std::pair<unsigned, unsigned> of(const char *Place) {
    for (; At != Place; ++At)
      if (*At == '\n') {
        ++Line;
        Begin = At + 1;
      }
    return {Line, static_cast<unsigned>(Place - Begin) + 1};
  }

private:
  const char *At, *Begin;
  unsigned Line = 1;
};

} // namespace

bool looksLikeLines(StringRef Text) {
  if (Text.starts_with(LineForm::Rest))
    return true;
  if (Text.starts_with("\"")) {
    std::string Name;
    AttrTextReader Quoted(Text);
    if (!Quoted.readQuoted(Name))
      return false;
    Text = Quoted.rest();
  } else {
    Text = Text.drop_until(LineForm::endsName);
  }
  return Text.ltrim(" \t").starts_with("=");
}

LineFile splitLines(StringRef Text) {
  StringRef Mark(LineForm::Rest);
  size_t At = Text.starts_with(Mark) ? 0 : Text.find(("\n" + Mark).str());
  if (At == StringRef::npos)
    return {Text, "", ""};
  if (At != 0)
    ++At;
  auto [Head, Rest] = Text.drop_front(At).split('\n');
  return {Text.take_front(At), Head.drop_front(Mark.size()).trim(), Rest};
}

Error readLines(StringRef Lines, StringRef FileName,
                tensorflow::GraphDef &Graph, LineMap &Found) {
  LineReader Reader(Lines, Graph);
  bool Valid = Reader.read();
  Places Of(Lines);
  // If two nodes have one name, an error must name the line of the second.
  for (const auto &[Name, At] : Reader.Nodes)
    Found[Name] = Of.of(At);
  if (Valid)
    return Error::success();
  auto [Line, Column] = Of.of(Reader.place());
  return make_error<InputError>(FileName.str(), Reader.error(), Line, Column);
}

} // namespace graft
