#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/tables.h"
#include "core/base/json_text.h"
#include "core/base/output_file.h"
#include "core/report/page/collect.h"

namespace forge::app {
namespace {

struct ReportOptions {
  std::string output = "report.html";
  bool json = false;
  TableOptions tables;
};

int write_report(const Context& context, const ReportOptions& options) {
  const project::Project project = context.project();
  const std::vector<report::Ablation> tables =
      build_tables(context, project, table_names(project), options.tables);
  const report::page::Page page =
      report::page::collect_page(project.path, project.name, tables, context.runs_dir());
  const std::string html = report::page::to_html(page);
  if (options.output == "-") {
    std::cout << html;
    return 0;
  }
  write_output_file(options.output, html);
  if (options.json) {
    const nlohmann::ordered_json result = {
        {"file", options.output}, {"bytes", html.size()}, {"runs", page.runs.size()}};
    std::cout << json_text(result) << "\n";
  } else {
    std::cerr << "wrote " << options.output << " with " << page.runs.size() << " runs\n";
  }
  return 0;
}

}  // namespace

void add_report(const Command& app, Program& program) {
  auto options = std::make_shared<ReportOptions>();
  const Command command = app.add_subcommand(
      "report", "Write tables, claims and curves of the project as one HTML file");
  command.footer(
      "Examples:\n"
      "  forge report\n"
      "  forge report -p canon --profile full -o canon.html\n"
      "\n"
      "The file needs no other file and no network: it can be mailed, archived and opened in any\n"
      "browser. The same runs give the same file. docs/REPORT.md describes it.");
  command.add_option("-o,--output", options->output, "File to write; - prints").capture_default();
  add_project_option(command, program);
  command.add_option("--profile",
                     options->tables.profile,
                     "Tables of runs of this profile; else the one that fills most rows");
  command.add_flag("--published", options->tables.published, "Published figures beside ours");
  command.add_flag("--json", options->json, "Print {\"file\", \"bytes\", \"runs\"}");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return write_report(c, *options); };
  });
}

}  // namespace forge::app
