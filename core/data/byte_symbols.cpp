#include "core/data/byte_symbols.h"

#include <algorithm>
#include <numeric>

namespace forge::data {
namespace {

constexpr int max_symbol = 0x143;  // 68 bytes are not printable: U+0100 … U+0143

std::array<uint16_t, 256> make_symbols() {
  std::array<uint16_t, 256> symbols{};
  uint16_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
    symbols[byte] = printable ? static_cast<uint16_t>(byte) : next++;
  }
  return symbols;
}

std::array<int16_t, max_symbol + 1> make_inverse() {
  std::array<int16_t, max_symbol + 1> inverse;
  inverse.fill(-1);
  for (int byte = 0; byte < 256; ++byte) inverse[byte_symbols()[byte]] = static_cast<int16_t>(byte);
  return inverse;
}

}  // namespace

const std::array<uint16_t, 256>& byte_symbols() {
  static const std::array<uint16_t, 256> symbols = make_symbols();
  return symbols;
}

const std::array<uint8_t, 256>& bytes_by_symbol() {
  static const std::array<uint8_t, 256> ordered = [] {
    std::array<uint8_t, 256> bytes{};
    std::iota(bytes.begin(), bytes.end(), uint8_t{0});
    std::sort(bytes.begin(), bytes.end(), [](uint8_t a, uint8_t b) {
      return byte_symbols()[a] < byte_symbols()[b];
    });
    return bytes;
  }();
  return ordered;
}

std::string to_symbols(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char byte : bytes) {
    const uint16_t symbol = byte_symbols()[static_cast<uint8_t>(byte)];
    if (symbol < 0x80) {
      text += static_cast<char>(symbol);
    } else {
      text += static_cast<char>(0xc0 | symbol >> 6);
      text += static_cast<char>(0x80 | (symbol & 0x3f));
    }
  }
  return text;
}

std::optional<std::string> from_symbols(std::string_view symbols) {
  static const std::array<int16_t, max_symbol + 1> inverse = make_inverse();
  std::string bytes;
  for (size_t i = 0; i < symbols.size(); ++i) {
    int symbol = static_cast<uint8_t>(symbols[i]);
    if (symbol >= 0x80) {  // all symbols beyond ASCII are two bytes of UTF-8
      if (symbol < 0xc2 || symbol > 0xdf || i + 1 == symbols.size()) return std::nullopt;
      const int second = static_cast<uint8_t>(symbols[++i]);
      if ((second & 0xc0) != 0x80) return std::nullopt;
      symbol = (symbol & 0x1f) << 6 | (second & 0x3f);
    }
    if (symbol > max_symbol || inverse[symbol] < 0) return std::nullopt;
    bytes += static_cast<char>(inverse[symbol]);
  }
  return bytes;
}

}  // namespace forge::data
