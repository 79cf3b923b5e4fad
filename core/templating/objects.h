#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/templating/value.h"

namespace forge::templating {

class Evaluator;

/// A value with behaviour of its own: namespaces, functions, macros, `loop` … What an object does
/// not override it refuses, as Python would.
class Object {
 public:
  virtual ~Object() = default;
  /// Python's name of the type, for messages.
  virtual std::string type_name() const = 0;
  virtual std::string repr() const { return "<" + type_name() + " object>"; }
  virtual std::string str() const { return repr(); }
  virtual std::optional<Value> attribute(const std::string& name);
  virtual std::optional<Value> item(const Value& key);
  virtual bool callable() const { return false; }
  virtual Value call(Evaluator& evaluator, const Arguments& arguments);
  virtual bool iterable() const { return false; }
  virtual List iterate() { return {}; }
  virtual std::optional<size_t> length() const { return std::nullopt; }
  virtual bool truthy() const { return length().value_or(1) > 0; }
  virtual bool equal_to(const Object& other) const { return this == &other; }
  /// Names of the attributes, for "did you mean".
  virtual std::vector<std::string> attribute_names() const { return {}; }
};

/// What `namespace()` gives: attributes that `set ns.x = …` changes from anywhere.
class Namespace : public Object {
 public:
  std::string type_name() const override { return "jinja2.utils.Namespace"; }
  std::string repr() const override;
  std::optional<Value> attribute(const std::string& name) override;
  std::vector<std::string> attribute_names() const override;
  void set(const std::string& name, Value value) {
    attributes_.set(Value::string(name), std::move(value));
  }
  void clear() { attributes_.clear(); }

 private:
  Dict attributes_;
};

/// A function written in C++: a global, or a method bound to its value.
class Function : public Object {
 public:
  using Body = std::function<Value(Evaluator&, const Arguments&)>;
  Function(std::string name, Body body) : name_(std::move(name)), body_(std::move(body)) {}
  std::string type_name() const override { return "function"; }
  std::string repr() const override { return "<function " + name_ + ">"; }
  bool callable() const override { return true; }
  Value call(Evaluator& evaluator, const Arguments& arguments) override {
    return body_(evaluator, arguments);
  }

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
  std::optional<Value> take_next();

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

/// One group of `groupby`: a pair (grouper, list) that prints as a plain tuple.
Value make_group(Value grouper, Value list);

/// What `cycler('a', 'b')` gives.
class Cycler : public Object {
 public:
  explicit Cycler(List items) : items_(std::make_shared<const List>(std::move(items))) {}
  std::string type_name() const override { return "jinja2.utils.Cycler"; }
  std::optional<Value> attribute(const std::string& name) override;
  std::vector<std::string> attribute_names() const override { return {"current", "next", "reset"}; }

 private:
  // Shared with the functions that next and reset return.
  std::shared_ptr<const List> items_;
  std::shared_ptr<size_t> position_ = std::make_shared<size_t>(0);
};

/// What `joiner(', ')` gives: "" at the first call, then the separator.
class Joiner : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string type_name() const override { return "jinja2.utils.Joiner"; }
  bool callable() const override { return true; }
  Value call(Evaluator& evaluator, const Arguments& arguments) override;

 private:
  Value separator_;
  bool used_ = false;
};

}  // namespace forge::templating
