#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "core/python/traced_text.h"

namespace forge::python {

class Dict;
class Object;
class Value;
struct Undefined;
using List = std::vector<Value>;

/// A value of the template language, with Python's types. Copies share strings and containers.
class Value {
 public:
  /// In the order of Data's types.
  enum class Kind { none, undefined, boolean, integer, real, string, list, tuple, dict, object };

  Value() = default;  ///< none
  Value(const Value&) = default;
  Value(Value&&) = default;
  Value& operator=(const Value&) = default;
  Value& operator=(Value&&) = default;
  ~Value() {
    if (is_container()) release(std::move(data_));
  }
  static Value undefined(Undefined what);
  static Value undefined_because(std::string message);
  static Value boolean(bool value) { return Value(Data(value)); }
  static Value integer(int64_t value) { return Value(Data(value)); }
  static Value real(double value) { return Value(Data(value)); }
  static Value string(std::string text);
  static Value string(TracedText text);
  static Value list(List items);
  static Value tuple(List items);
  static Value dict(Dict entries);
  static Value object(std::shared_ptr<Object> object) { return Value(Data(std::move(object))); }

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is_undefined() const { return kind() == Kind::undefined; }
  /// An undefined value whose use is no error.
  bool is_lenient() const;
  bool is_none() const { return kind() == Kind::none; }
  bool is_boolean() const { return kind() == Kind::boolean; }
  bool is_string() const { return kind() == Kind::string; }
  bool is_dict() const { return kind() == Kind::dict; }
  bool is_object() const { return kind() == Kind::object; }
  /// Integers and booleans, which count as 0 and 1 in arithmetic.
  bool is_integral() const { return kind() == Kind::integer || is_boolean(); }
  bool is_number() const { return is_integral() || kind() == Kind::real; }
  bool is_sequence() const { return kind() == Kind::list || kind() == Kind::tuple; }

  // Each may be called on a value of its kind only.
  const Undefined& as_undefined() const { return *std::get<UndefinedPtr>(data_); }
  bool as_boolean() const { return std::get<bool>(data_); }
  const std::string& as_string() const { return traced().text(); }
  const TracedText& traced() const { return *std::get<TextPtr>(data_); }
  List& items() const;  ///< of a list or tuple
  Dict& as_dict() const { return *std::get<DictPtr>(data_); }
  const std::shared_ptr<Object>& as_object() const { return std::get<ObjectPtr>(data_); }
  int64_t as_integer() const;  ///< of an integral value
  double as_real() const;      ///< of a number

  /// The object behind the value as a T, or null.
  template <typename T>
  T* object_as() const {
    return is_object() ? dynamic_cast<T*>(as_object().get()) : nullptr;
  }
  /// Python's `is`: the same object.
  bool same_as(const Value& other) const { return data_ == other.data_; }

 private:
  struct Tuple;
  using UndefinedPtr = std::shared_ptr<const Undefined>;
  using TextPtr = std::shared_ptr<const TracedText>;
  using ListPtr = std::shared_ptr<List>;
  using TuplePtr = std::shared_ptr<Tuple>;
  using DictPtr = std::shared_ptr<Dict>;
  using ObjectPtr = std::shared_ptr<Object>;
  using Data = std::variant<std::monostate,
                            UndefinedPtr,
                            bool,
                            int64_t,
                            double,
                            TextPtr,
                            ListPtr,
                            TuplePtr,
                            DictPtr,
                            ObjectPtr>;

  explicit Value(Data data) : data_(std::move(data)) {}
  bool is_container() const { return kind() >= Kind::list; }
  /// Frees a container without recursion, however deeply containers are nested in it.
  static void release(Data data);

  Data data_;
};

/// Why a value is missing; using it (printing, comparing, calling …) is an error with this reason.
struct Undefined {
  enum class What { variable, attribute, other } what = What::other;
  std::string name;      ///< of the variable or attribute
  std::string message;   ///< "'x' is undefined"
  Value owner = {};      ///< whose attribute is missing
  Place place = {};      ///< where the template named it
  bool lenient = false;  ///< an inline `if` without `else`: prints as nothing, is false
};

/// Arguments of a call.
struct Arguments {
  List positional;
  std::vector<std::pair<std::string, Value>> named;

  const Value* find(const std::string& name) const;
};

/// Hash and equality of Python's dict keys: 1, 1.0 and True are one key.
struct KeyHash {
  size_t operator()(const Value& key) const { return hash(key, 0); }

 private:
  static size_t hash(const Value& key, int depth);
};
struct KeyEqual {
  bool operator()(const Value& a, const Value& b) const;
};

/// A dict: keys in order of insertion.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  const std::vector<Entry>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }
  /// Throws OperationError for a key that Python cannot hash.
  const Value* find(const Value& key) const;
  void set(const Value& key, Value value);
  bool erase(const Value& key);
  void clear();

 private:
  std::vector<Entry> entries_;
  std::unordered_map<Value, size_t, KeyHash, KeyEqual> index_;
};

}  // namespace forge::python
