#include "core/python/traced_text.h"

namespace forge::python {

void TracedText::append_run(std::string_view text, Place place, bool literal) {
  if (text.empty()) return;
  bool continues = false;
  if (!runs_.empty()) {
    const Run& last = runs_.back();
    const size_t length = text_.size() - last.begin;
    const uint32_t expected =
        last.place.position + static_cast<uint32_t>(last.literal ? length : 0);
    continues =
        last.literal == literal && last.place.use == place.use && expected == place.position;
  }
  if (!continues) runs_.push_back({text_.size(), place, literal});
  text_ += text;
}

void TracedText::append(const TracedText& other, Place place) {
  const std::string_view text = other.text_;
  const size_t first = other.runs_.empty() ? text.size() : other.runs_.front().begin;
  append_printed(text.substr(0, first), place);
  for (size_t i = 0; i < other.runs_.size(); ++i) {
    const Run& run = other.runs_[i];
    const size_t end = i + 1 < other.runs_.size() ? other.runs_[i + 1].begin : text.size();
    const bool known = run.place.use != nullptr;
    append_run(
        text.substr(run.begin, end - run.begin), known ? run.place : place, known && run.literal);
  }
}

TracedText TracedText::substring(size_t begin, size_t size) const {
  TracedText part(text_.substr(begin, size));
  for (size_t i = 0; i < runs_.size(); ++i) {
    Run run = runs_[i];
    const size_t end = i + 1 < runs_.size() ? runs_[i + 1].begin : text_.size();
    if (end <= begin || run.begin >= begin + part.text_.size()) continue;
    if (run.begin < begin) {
      if (run.literal) run.place.position += static_cast<uint32_t>(begin - run.begin);
      run.begin = begin;
    }
    run.begin -= begin;
    part.runs_.push_back(run);
  }
  return part;
}

}  // namespace forge::python
