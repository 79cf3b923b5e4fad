#include "core/python/value.h"

#include <functional>

#include "core/python/objects.h"
#include "core/python/operation.h"
#include "core/python/operators.h"

namespace forge::python {

struct Value::Tuple {
  List items;
};

Value Value::undefined(Undefined what) {
  return Value(Data(std::make_shared<const Undefined>(std::move(what))));
}
Value Value::undefined_because(std::string message) {
  return undefined({Undefined::What::other, "", std::move(message)});
}
Value Value::string(std::string text) { return string(TracedText(std::move(text))); }
Value Value::string(TracedText text) {
  charge_text(text.text().size());
  return Value(Data(std::make_shared<const TracedText>(std::move(text))));
}
Value Value::list(List items) {
  charge_items(items.size());
  return Value(Data(std::make_shared<List>(std::move(items))));
}
Value Value::tuple(List items) {
  charge_items(items.size());
  return Value(Data(std::make_shared<Tuple>(Tuple{std::move(items)})));
}
Value Value::dict(Dict entries) {
  charge_items(entries.size());
  return Value(Data(std::make_shared<Dict>(std::move(entries))));
}

void Value::release(Data data) {
  thread_local std::vector<Data> pending;
  thread_local bool is_draining = false;
  pending.push_back(std::move(data));
  if (is_draining) return;
  is_draining = true;
  while (!pending.empty()) {
    // Destroying `last` re-enters release() for nested containers, which appends to `pending`.
    const Data last = std::move(pending.back());
    pending.pop_back();
  }
  is_draining = false;
}

bool Value::is_lenient() const { return is_undefined() && as_undefined().lenient; }

List& Value::items() const {
  if (const auto* list = std::get_if<ListPtr>(&data_)) return **list;
  return std::get<TuplePtr>(data_)->items;
}

int64_t Value::as_integer() const {
  if (const bool* value = std::get_if<bool>(&data_)) return *value ? 1 : 0;
  return std::get<int64_t>(data_);
}

double Value::as_real() const {
  if (const double* value = std::get_if<double>(&data_)) return *value;
  return static_cast<double>(as_integer());
}

const Value* Arguments::find(const std::string& name) const {
  for (const auto& [key, value] : named) {
    if (key == name) return &value;
  }
  return nullptr;
}

size_t KeyHash::hash(const Value& key, int depth) {
  charge_walk(20);
  if (depth > 100) throw OperationError("this tuple is too deeply nested for a key");
  switch (key.kind()) {
    case Value::Kind::none: return 1;
    case Value::Kind::boolean:
    case Value::Kind::integer:
    case Value::Kind::real: return std::hash<double>{}(key.as_real());
    case Value::Kind::string:
      charge_walk(key.as_string().size());
      return std::hash<std::string>{}(key.as_string());
    case Value::Kind::tuple: {
      size_t sum = 17;
      for (const Value& item : key.items()) sum = sum * 31 + hash(item, depth + 1);
      return sum;
    }
    case Value::Kind::object: return std::hash<const void*>{}(key.as_object().get());
    case Value::Kind::undefined:
      if (key.is_lenient()) return 2;
      throw UndefinedError(key);
    default: throw OperationError("unhashable type: '" + type_name(key) + "'");
  }
}

bool KeyEqual::operator()(const Value& a, const Value& b) const {
  return a.same_as(b) || equals(a, b);
}

const Value* Dict::find(const Value& key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

void Dict::set(const Value& key, Value value) {
  charge_walk(cost_of_item);
  const auto [found, inserted] = index_.emplace(key, entries_.size());
  if (inserted) {
    entries_.emplace_back(key, std::move(value));
  } else {
    entries_[found->second].second = std::move(value);
  }
}

bool Dict::erase(const Value& key) {
  const auto found = index_.find(key);
  if (found == index_.end()) return false;
  const size_t place = found->second;
  index_.erase(found);
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(place));
  for (auto& [other, position] : index_) {
    if (position > place) --position;
  }
  return true;
}

void Dict::clear() {
  entries_.clear();
  index_.clear();
}

}  // namespace forge::python
