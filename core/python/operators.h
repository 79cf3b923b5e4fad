#pragma once

#include <optional>
#include <string>

#include "core/python/value.h"

namespace forge::python {

/// The operators of the language on values, with Python's meaning. Each throws OperationError for
/// operands that it does not take, and UndefinedError for undefined ones.

enum class BinaryOperator { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class Comparison { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };

/// Texts and lists may not grow past these sizes, so that no template fills the memory.
constexpr size_t max_text_size = size_t{64} << 20;
constexpr size_t max_list_size = 10'000'000;
void require_text_size(size_t size);
void require_list_size(size_t size);

/// Python's name of the value's type: "int", "str", "NoneType" …
std::string type_name(const Value& value);

Value apply(BinaryOperator operation, const Value& left, const Value& right);
Value negate(const Value& value);
Value unary_plus(const Value& value);
bool compare(Comparison comparison, const Value& left, const Value& right);
bool equals(const Value& left, const Value& right);
/// Python's `<`.
bool less(const Value& left, const Value& right);
bool contains(const Value& container, const Value& item);
bool is_truthy(const Value& value);

/// len(value).
size_t len(const Value& value);
/// All items of an iterable: of a list, a dict's keys, a string's characters …
List iterate(const Value& value);
bool is_iterable(const Value& value);
/// value[key], or nothing when there is no such item (or no items at all).
std::optional<Value> get_item(const Value& value, const Value& key);
/// value[begin:end:step]; none leaves a bound open.
Value slice(const Value& value, const Value& begin, const Value& end, const Value& step);

/// dict.update(source): another dict, or pairs of key and value.
void update_dict(Dict& dict, const Value& source);
/// The same for the arguments (mapping, name=value …) of the function that is called so in
/// messages.
void update_dict(Dict& dict, const std::string& function, const Arguments& arguments);

/// Index of a sequence of `size` items: negative ones count from the end.
std::optional<size_t> resolve_index(int64_t index, size_t size);

/// An operation on two numbers. Integers have 64 bits; leaving them is an error.
Value calculate(BinaryOperator operation, const Value& left, const Value& right);

/// What `+`, `*` and `%` mean for texts and sequences; nothing where they mean nothing.
std::optional<Value> combine(BinaryOperator operation, const Value& left, const Value& right);

}  // namespace forge::python
