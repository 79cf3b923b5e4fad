#include "core/lint/finding.h"

#include <tuple>

namespace forge::lint {
namespace {

const std::string& file_of(const Finding& finding) {
  static const std::string none;
  return finding.where ? finding.where.source->name : none;
}

auto order_of(const Finding& finding) {
  return std::make_tuple(std::cref(file_of(finding)),
                         finding.where.line,
                         finding.where.column,
                         finding.severity,
                         std::cref(finding.rule),
                         std::cref(finding.message));
}

}  // namespace

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::error: return "error";
    case Severity::warning: return "warning";
    case Severity::note: return "note";
  }
  return "";
}

Finding finding_of(const Error& error, const std::string& rule) {
  return {Severity::error, rule, error.where(), error.message(), error.hint(), ""};
}

bool comes_before(const Finding& a, const Finding& b) { return order_of(a) < order_of(b); }

bool is_same(const Finding& a, const Finding& b) { return order_of(a) == order_of(b); }

}  // namespace forge::lint
