#include "core/templating/work.h"

#include "core/templating/operation_error.h"

namespace forge::templating::detail {

void refuse_work() { throw OperationError("this template does too much work", work_hint); }

}  // namespace forge::templating::detail
