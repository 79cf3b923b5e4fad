#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/python/value.h"

namespace forge::python {

/// The arguments of a call, matched to the names of a function's parameters as Python does it.
class Parameters {
 public:
  /// The first `required` names must be given. Throws OperationError for too few or too many
  /// arguments and for unknown or repeated names. `function` names it in messages: "filter
  /// 'join'".
  Parameters(const std::string& function,
             const Arguments& arguments,
             const std::vector<std::string>& names,
             size_t required = 0);

  /// The same; throws OperationError for named arguments, which most methods of Python's built-in
  /// types do not take.
  static Parameters positional(const std::string& function,
                               const Arguments& arguments,
                               const std::vector<std::string>& names,
                               size_t required = 0);

  bool given(size_t index) const { return values_[index].has_value(); }
  /// The argument, or none.
  Value value(size_t index) const { return values_[index].value_or(Value()); }
  Value value(size_t index, Value fallback) const {
    return values_[index].value_or(std::move(fallback));
  }
  /// Each throws OperationError for an argument of another type.
  std::string text(size_t index, std::string fallback = "") const;
  int64_t integer(size_t index, int64_t fallback = 0) const;
  bool flag(size_t index, bool fallback = false) const;
  /// Nothing for an argument that is not given, or none.
  std::optional<std::string> optional_text(size_t index) const;
  std::optional<int64_t> optional_integer(size_t index) const;

 private:
  std::string where(size_t index) const;

  std::string function_;
  std::vector<std::string> names_;
  std::vector<std::optional<Value>> values_;
};

/// A value with behaviour of its own: namespaces, functions, macros, `loop` … What an object does
/// not override it refuses, as Python would.
class Object {
 public:
  virtual ~Object() = default;
  /// Python's name of the type, for messages.
  virtual std::string type_name() const = 0;
  /// The subject of "… has no attribute 'x'".
  virtual std::string shown_type() const { return "'" + type_name() + " object'"; }
  virtual std::string repr() const { return "<" + type_name() + " object>"; }
  virtual std::string str() const { return repr(); }
  virtual std::optional<Value> attribute(const std::string& name);
  virtual std::optional<Value> item(const Value& key);
  virtual bool callable() const { return false; }
  virtual Value call(const Arguments& arguments);
  virtual bool iterable() const { return false; }
  virtual List iterate() { return {}; }
  virtual std::optional<size_t> length() const { return std::nullopt; }
  virtual bool truthy() const { return length().value_or(1) > 0; }
  virtual bool equal_to(const Object& other) const { return this == &other; }
  /// Names of the attributes, for "did you mean".
  virtual std::vector<std::string> attribute_names() const { return {}; }
};

/// A function written in C++: a global, or a method bound to its value.
class Function : public Object {
 public:
  using Body = std::function<Value(const Arguments&)>;
  Function(std::string name, Body body) : name_(std::move(name)), body_(std::move(body)) {}
  std::string type_name() const override { return "function"; }
  std::string repr() const override { return "<function " + name_ + ">"; }
  bool callable() const override { return true; }
  Value call(const Arguments& arguments) override { return body_(arguments); }

 private:
  std::string name_;
  Body body_;
};

Value make_function(std::string name, Function::Body body);

/// range(begin, end, step).
class Range : public Object {
 public:
  Range(int64_t begin, int64_t end, int64_t step);
  std::string type_name() const override { return "range"; }
  std::string repr() const override;
  std::optional<Value> item(const Value& key) override;
  bool iterable() const override { return true; }
  List iterate() override;
  std::optional<size_t> length() const override { return size_; }
  bool equal_to(const Object& other) const override;
  /// The range of the items at the indices begin, begin + step … before end.
  Value slice(int64_t begin, int64_t end, int64_t step) const;

 private:
  int64_t begin_, end_, step_;
  size_t size_;
};

/// The lazy result of map(), select() and their like: it can be walked once and has no length.
class Generator : public Object {
 public:
  explicit Generator(List items) : items_(std::move(items)) {}
  std::string type_name() const override { return "generator"; }
  bool iterable() const override { return true; }
  List iterate() override { return std::exchange(items_, {}); }
  std::optional<Value> next();

 private:
  List items_;
};

Value make_generator(List items);

/// dict.keys(), .values() and .items(): a view that follows its dict.
class DictView : public Object {
 public:
  enum class Part { keys, values, items };
  DictView(Value dict, Part part) : dict_(std::move(dict)), part_(part) {}
  std::string type_name() const override;
  std::string repr() const override;
  bool iterable() const override { return true; }
  List iterate() override { return list(); }
  std::optional<size_t> length() const override { return dict_.as_dict().size(); }

 private:
  List list() const;

  Value dict_;
  Part part_;
};

/// A named tuple such as uname: printed as `type(name='…', …)`.
class Record : public Object {
 public:
  using Fields = std::vector<std::pair<std::string, Value>>;
  /// A record without a type's name prints as a plain tuple.
  Record(std::string type, Fields fields) : type_(std::move(type)), fields_(std::move(fields)) {}
  std::string type_name() const override { return type_; }
  std::string repr() const override;
  std::optional<Value> attribute(const std::string& name) override;
  std::optional<Value> item(const Value& key) override;
  bool iterable() const override { return true; }
  List iterate() override { return values(); }
  std::optional<size_t> length() const override { return fields_.size(); }
  std::vector<std::string> attribute_names() const override;

 private:
  List values() const;

  std::string type_;
  Fields fields_;
};

}  // namespace forge::python