#include "core/data/sentencepiece_spec.h"

#include "core/base/error.h"

namespace forge::data {
namespace {

/// A field of a message in the wire format of Protocol Buffers.
struct Field {
  uint64_t number = 0;
  uint64_t value = 0;      ///< of a varint
  std::string_view bytes;  ///< of a text, list of bytes or message
};

class MessageReader {
 public:
  explicit MessageReader(std::string_view message) : rest_(message) {}

  bool next(Field& field) {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    field = Field{};
    field.number = tag >> 3;
    switch (tag & 7) {
      case 0: field.value = varint(); break;
      case 1: take(8); break;
      case 2: field.bytes = take(varint()); break;
      case 5: take(4); break;
      default: fail();
    }
    return true;
  }

 private:
  [[noreturn]] static void fail() { throw Error("it is no SentencePiece model, or a damaged one"); }

  std::string_view take(uint64_t size) {
    if (size > rest_.size()) fail();
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint64_t byte = static_cast<uint8_t>(take(1)[0]);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    fail();
  }

  std::string_view rest_;
};

uint64_t type_of_piece(std::string_view message) {
  uint64_t type = SentencePieceSpec::normal;
  MessageReader reader(message);
  for (Field field; reader.next(field);) {
    if (field.number == 3) type = field.value;
  }
  return type;
}

void read_trainer_spec(std::string_view message, SentencePieceSpec& spec) {
  MessageReader reader(message);
  for (Field field; reader.next(field);) {
    if (field.number == 3) spec.model_type = field.value;
    if (field.number == 24) spec.space_behind_word = field.value != 0;
    if (field.number == 35) spec.byte_fallback = field.value != 0;
  }
}

void read_normalizer_spec(std::string_view message, SentencePieceSpec& spec) {
  MessageReader reader(message);
  for (Field field; reader.next(field);) {
    if (field.number == 1) spec.normalizer = std::string(field.bytes);
    if (field.number == 2) spec.has_rule = !field.bytes.empty();
    if (field.number == 3) spec.prefix_space = field.value != 0;
    if (field.number == 4) spec.removes_spaces = field.value != 0;
    if (field.number == 5) spec.escapes_spaces = field.value != 0;
  }
}

}  // namespace

SentencePieceSpec read_sentencepiece_spec(std::string_view model) {
  SentencePieceSpec spec;
  MessageReader reader(model);
  for (Field field; reader.next(field);) {
    if (field.number == 1) spec.piece_types.push_back(type_of_piece(field.bytes));
    if (field.number == 2) read_trainer_spec(field.bytes, spec);
    if (field.number == 3) read_normalizer_spec(field.bytes, spec);
    if (field.number == 5) {
      SentencePieceSpec decoding;
      read_normalizer_spec(field.bytes, decoding);
      spec.has_decoding_rule = decoding.has_rule;
    }
  }
  return spec;
}

}  // namespace forge::data
