#pragma once

#include <string>

#include "core/base/error.h"

/// Private to the expressions of core/report.
namespace forge::report {

/// An Error at byte `offset` of an expression whose text begins at `where`. Where the file shows
/// the text as it is, the caret stands under the byte itself; else the message says the column.
Error expression_error(const std::string& message,
                       const std::string& text,
                       size_t offset,
                       const SourceSpan& where,
                       const std::string& hint);

}  // namespace forge::report
