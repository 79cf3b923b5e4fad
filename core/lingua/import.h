#pragma once

#include "core/config/fields.h"
#include "core/lingua/import_recipe.h"

namespace forge::lingua {

/// An import as it goes on: what is read, what is stated. Its parts are in import_model.cpp,
/// import_data.cpp and import_training.cpp.
class Import {
 public:
  Import(const ReadRecipe& read, const ImportOptions& options)
      : read_(read), recipe_(read.recipe), options_(options) {}

  ImportedRecipe run();

 private:
  /// Gives a key of the config its value, with a remark on where that comes from.
  template <class T, class U>
  void state(const std::string& path, T& field, U value, const std::string& remark = "") {
    field = static_cast<T>(value);
    imported_.stated[path] = remark;
  }
  void note(const std::string& text) { imported_.notes.push_back(text); }
  /// Throws at the place of the recipe's key.
  [[noreturn]] void refuse(const std::string& path,
                           const std::string& message,
                           const std::string& hint = "") const;
  [[noreturn]] void refuse_word(const std::string& path,
                                const std::string& word,
                                const std::vector<std::string>& known) const;

  void take_shape();
  void take_position();
  void take_rest_of_model();
  void take_canon();

  void take_data();
  void take_tokenizer();
  void take_vocabulary();

  int64_t data_parallel_ranks();
  config::Precision precision() const;
  void take_training();
  void take_optimizer();
  void take_schedule();

  void take_names();

  const ReadRecipe& read_;
  const Recipe& recipe_;
  const ImportOptions& options_;
  ImportedRecipe imported_;
  config::Experiment& experiment_ = imported_.experiment;
};

}  // namespace forge::lingua
