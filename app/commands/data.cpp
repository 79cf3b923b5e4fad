#include "app/commands/data.h"

namespace forge::app {

void add_data(const Command& app, Program& program) {
  const Command data = app.add_subcommand("data", "Text and its tokens: prepare them, look at them")
                           .requires_subcommand();
  data.footer(
      "Examples:\n"
      "  forge data get tinystories                a public text from the network\n"
      "  forge data prepare train_llama            what a run would train on, beforehand\n"
      "  forge data prepare --path books/ --documents block --vocab-size 8000\n"
      "  forge data sample depo1/rope              texts of a synthetic task\n"
      "  forge data ls                             what is prepared, and how large it is\n"
      "  forge data show toy_stories --documents 2\n"
      "  forge data stats toy_stories --json");
  add_data_get(data, program);
  add_data_prepare(data, program);
  add_data_sample(data, program);
  add_data_ls(data, program);
  add_data_show(data, program);
  add_data_stats(data, program);
}

}  // namespace forge::app
