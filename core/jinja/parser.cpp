#include "core/jinja/parser.h"

#include <algorithm>
#include <initializer_list>
#include <map>

#include "core/base/text.h"
#include "core/jinja/expression_parser.h"
#include "core/python/unicode.h"

namespace forge::jinja {
namespace {

/// Tags inside tags: deeper ones are refused, so that walking the tree never exhausts the stack.
constexpr int max_nesting = 100;

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(tokenize(text)), expressions_(tokens_) {}

  ast::Template parse() {
    NameUses uses;
    expressions_.begin_tracking(&uses);
    template_.body = parse_body({});
    template_.uses_self = uses.count("self") > 0;
    return std::move(template_);
  }

 private:
  using EndNames = std::initializer_list<std::string_view>;

  /// Where a statement stands: `extends` belongs to the top, where only `if` may surround it.
  /// What is captured (blocks, macros, set blocks) is printed even where `extends` stands before.
  enum class Scope { top, inner, captured };

  bool at_end_tag(EndNames end_names) const {
    if (!tokens_.is(Token::Kind::name)) return false;
    return std::find(end_names.begin(), end_names.end(), tokens_.current().text) != end_names.end();
  }

  /// Statements up to one of the end tags, whose name becomes the current token; or up to the end
  /// of the template where no end tag is given.
  ast::Body parse_body(EndNames end_names) {
    ast::Body body;
    while (!tokens_.is(Token::Kind::end)) {
      const Token token = tokens_.take();
      if (token.kind == Token::Kind::literal) {
        body.push_back({ast::Literal{token.text}, token.position});
      } else if (token.kind == Token::Kind::print_begin) {
        const uint32_t position = tokens_.current().position;
        // What is never printed may name unknown filters, as in Jinja.
        const bool discards_output = extends_ && scope_ != Scope::captured;
        if (discards_output) ++expressions_.conditional_depth;
        body.push_back({ast::Print{expressions_.parse_tuple()}, position});
        if (discards_output) --expressions_.conditional_depth;
        tokens_.expect(Token::Kind::print_end, "end of print statement '}}'");
      } else {
        if (at_end_tag(end_names)) return body;
        parse_statement(body, end_names);
        tokens_.expect(Token::Kind::tag_end, "end of tag '%}'");
      }
    }
    return body;
  }

  /// The body of a tag whose own tag is about to end.
  ast::Body parse_tag_body(EndNames end_names, Scope scope = Scope::inner) {
    const Token opening = tag_;
    tokens_.skip_symbol(":");
    tokens_.expect(Token::Kind::tag_end, "end of tag '%}'");
    if (++nesting_ > max_nesting) throw SyntaxError("tags are nested too deeply", opening.position);
    const bool stays = scope == Scope::top || scope_ == Scope::captured;
    const Scope outer = std::exchange(scope_, stays ? scope_ : scope);
    // A frame of its own is compiled for itself: only an `if` within it hides unknown filters.
    const int conditions = expressions_.conditional_depth;
    if (scope != Scope::top) expressions_.conditional_depth = 0;
    ast::Body body = parse_body(end_names);
    expressions_.conditional_depth = conditions;
    scope_ = outer;
    --nesting_;
    if (tokens_.is(Token::Kind::end)) {
      throw SyntaxError("'" + std::string(opening.text) + "' is never ended",
                        opening.position,
                        "expected {% " + join_names(end_names) + " %}");
    }
    tag_ = opening;
    return body;
  }

  static std::string join_names(EndNames names) {
    std::string joined;
    for (const std::string_view name : names)
      joined += (joined.empty() ? "" : " %} or {% ") + std::string(name);
    return joined;
  }

  /// Parses one tag with all that belongs to it, and adds the statement.
  template <auto parse>
  void add(ast::Body& body) {
    const uint32_t position = tag_.position;
    body.push_back({(this->*parse)(), position});
  }

  using Tags = std::map<std::string_view, void (Parser::*)(ast::Body&)>;
  static const Tags& tags() {
    static const Tags table = {{"autoescape", &Parser::add<&Parser::parse_autoescape>},
                               {"block", &Parser::add<&Parser::parse_block>},
                               {"call", &Parser::add<&Parser::parse_call_block>},
                               {"extends", &Parser::add<&Parser::parse_extends>},
                               {"filter", &Parser::add<&Parser::parse_filter_block>},
                               {"for", &Parser::add<&Parser::parse_for>},
                               {"from", &Parser::add<&Parser::parse_from>},
                               {"if", &Parser::add<&Parser::parse_if>},
                               {"import", &Parser::add<&Parser::parse_import>},
                               {"include", &Parser::add<&Parser::parse_include>},
                               {"macro", &Parser::add<&Parser::parse_macro>},
                               {"print", &Parser::parse_print},
                               {"set", &Parser::parse_set},
                               {"with", &Parser::add<&Parser::parse_with>}};
    return table;
  }

  void parse_statement(ast::Body& body, EndNames end_names) {
    tag_ = tokens_.expect(Token::Kind::name, "the name of a tag");
    const auto tag = tags().find(tag_.text);
    if (tag == tags().end()) refuse_tag(tag_, end_names);
    (this->*tag->second)(body);
  }

  [[noreturn]] static void refuse_tag(const Token& tag, EndNames end_names) {
    const std::string name(tag.text);
    if (starts_with(name, "end") || name == "else" || name == "elif") {
      const std::string expected =
          end_names.size() == 0 ? "" : "{% " + join_names(end_names) + " %} is due here";
      throw SyntaxError("'" + name + "' ends nothing here", tag.position, expected);
    }
    std::vector<std::string> known = {"raw"};
    for (const auto& [tag_name, parse] : tags()) known.emplace_back(tag_name);
    throw SyntaxError("there is no tag '" + name + "'", tag.position, did_you_mean(name, known));
  }

  std::string parse_name(const std::string& what) {
    return std::string(tokens_.expect(Token::Kind::name, what).text);
  }

  static void require_assignable(const std::string& name, uint32_t position) {
    static const std::vector<std::string> constants = {
        "true", "false", "none", "True", "False", "None"};
    if (std::find(constants.begin(), constants.end(), name) != constants.end()) {
      throw SyntaxError("cannot assign to '" + name + "'", position);
    }
  }

  /// A name, or a name in parentheses, or a tuple of such.
  ast::Target parse_simple_target() {
    ast::Target target;
    target.position = tokens_.current().position;
    if (tokens_.is_symbol("(")) {
      if (++nesting_ > max_nesting) tokens_.fail("targets are nested too deeply");
      tokens_.take();
      target = parse_target(")");
      tokens_.expect_symbol(")");
      --nesting_;
      return target;
    }
    target.name = parse_name("a name to assign to");
    require_assignable(target.name, target.position);
    if (loops_ > 0 && target.name == "loop") refuse_loop_variable(target.position);
    return target;
  }

  /// Targets with commas between them, up to `end` (a name or symbol).
  ast::Target parse_target(std::string_view end) {
    ast::Target tuple;
    tuple.position = tokens_.current().position;
    const auto at_end = [&] { return tokens_.is_name(end) || tokens_.is_symbol(end); };
    do {
      if (!tuple.parts.empty() && at_end()) break;
      tuple.parts.push_back(parse_simple_target());
      tuple.is_tuple = tuple.is_tuple || tokens_.is_symbol(",");
    } while (tokens_.skip_symbol(","));
    return tuple.is_tuple ? tuple : tuple.parts[0];
  }

  ast::Target parse_set_target() {
    if (!TokenStream::is(tokens_.following(), Token::Kind::symbol, ".")) return parse_target("=");
    ast::Target target;
    target.position = tokens_.current().position;
    target.name = parse_name("the name of a namespace");
    tokens_.take();
    target.attribute = parse_name("the name of an attribute");
    return target;
  }

  void parse_set(ast::Body& body) {
    const Token tag = tag_;
    ast::Target target = parse_set_target();
    if (tokens_.skip_symbol("=")) {
      body.push_back({ast::Set{std::move(target), expressions_.parse_tuple()}, tag.position});
      return;
    }
    ast::SetBlock block;
    block.target = std::move(target);
    if (tokens_.skip_symbol("|")) block.filter = expressions_.parse_filter_chain();
    block.body = parse_tag_body({"endset"}, Scope::captured);
    tokens_.take();
    body.push_back({std::move(block), tag.position});
  }

  ast::If parse_if() {
    ast::If statement;
    ++expressions_.conditional_depth;
    while (true) {
      ast::ExpressionPtr test = expressions_.parse_tuple(false);
      statement.branches.emplace_back(std::move(test),
                                      parse_tag_body({"elif", "else", "endif"}, Scope::top));
      const Token end = tokens_.take();
      if (end.text == "elif") continue;
      if (end.text == "else") {
        statement.otherwise = parse_tag_body({"endif"}, Scope::top);
        tokens_.take();
      }
      break;
    }
    --expressions_.conditional_depth;
    return statement;
  }

  ast::For parse_for() {
    ast::For loop;
    loop.target = parse_target("in");
    if (assigns_loop(loop.target)) refuse_loop_variable(loop.target.position);
    tokens_.expect_name("in");
    loop.iterable = expressions_.parse_tuple(false, "recursive");
    if (tokens_.skip_name("if")) loop.test = expressions_.parse();
    loop.recursive = tokens_.skip_name("recursive");
    NameUses uses;
    expressions_.begin_tracking(&uses);
    ++loops_;
    loop.body = parse_tag_body({"endfor", "else"});
    expressions_.end_tracking();
    loop.uses_loop = uses.count("loop") > 0 || loop.recursive;
    if (tokens_.take().text == "else") {
      loop.otherwise = parse_tag_body({"endfor"});
      tokens_.take();
    }
    --loops_;
    return loop;
  }

  static bool assigns_loop(const ast::Target& target) {
    return target.name == "loop" ||
           std::any_of(target.parts.begin(), target.parts.end(), assigns_loop);
  }

  [[noreturn]] static void refuse_loop_variable(uint32_t position) {
    throw SyntaxError("a loop cannot assign to its variable 'loop'", position);
  }

  ast::BlockUse parse_block() {
    const Token tag = tag_;
    auto block = std::make_unique<ast::Block>();
    block->name = parse_name("the name of a block");
    if (tokens_.is_symbol("-")) tokens_.fail("a block's name cannot contain '-'", "use '_'");
    block->scoped = tokens_.skip_name("scoped");
    block->required = tokens_.skip_name("required");
    if (template_.blocks.count(block->name)) {
      throw SyntaxError("block '" + block->name + "' is defined twice in this template",
                        tag.position);
    }
    const ast::Block* result = block.get();
    template_.blocks[block->name] = nullptr;  // a block within it cannot take the name
    if (block->scoped) expressions_.note_use("loop");
    NameUses uses;
    std::vector<NameUses*> outer = expressions_.swap_trackers({&uses});
    block->body = parse_tag_body({"endblock"}, Scope::captured);
    expressions_.swap_trackers(std::move(outer));
    block->uses_self = uses.count("self") > 0;
    block->uses_super = uses.count("super") > 0;
    if (block->required) require_blank(*block, tag);
    tokens_.take();
    tokens_.skip_name(block->name);
    template_.blocks[block->name] = std::move(block);
    return {result};
  }

  static void require_blank(const ast::Block& block, const Token& tag) {
    for (const ast::Statement& statement : block.body) {
      const auto* literal = std::get_if<ast::Literal>(&statement.node);
      if (literal && leading_space(literal->text) == literal->text.size()) continue;
      throw SyntaxError("a required block may hold only comments and white space", tag.position);
    }
  }

  ast::Extends parse_extends() {
    if (scope_ != Scope::top)
      throw SyntaxError("'extends' stands inside another tag", tag_.position);
    extends_ = extends_ || expressions_.conditional_depth == 0;
    return {expressions_.parse()};
  }

  bool at_context() const {
    return (tokens_.is_name("with") || tokens_.is_name("without")) &&
           TokenStream::is(tokens_.following(), Token::Kind::name, "context");
  }

  bool parse_context(bool fallback) {
    if (!at_context()) return fallback;
    const bool with = tokens_.take().text == "with";
    tokens_.take();
    return with;
  }

  ast::Include parse_include() {
    ast::Include include;
    include.name = expressions_.parse();
    if (tokens_.is_name("ignore") &&
        TokenStream::is(tokens_.following(), Token::Kind::name, "missing")) {
      tokens_.take();
      tokens_.take();
      include.ignore_missing = true;
    }
    include.with_context = parse_context(true);
    return include;
  }

  ast::Import parse_import() {
    ast::Import import;
    import.name = expressions_.parse();
    tokens_.expect_name("as");
    const uint32_t position = tokens_.current().position;
    import.target = parse_name("a name for the imported template");
    require_assignable(import.target, position);
    import.with_context = parse_context(false);
    return import;
  }

  ast::FromImport parse_from() {
    ast::FromImport import;
    import.name = expressions_.parse();
    tokens_.expect_name("import");
    while (!at_context()) {
      const uint32_t position = tokens_.current().position;
      const std::string name = parse_name("a name to import");
      if (name[0] == '_')
        throw SyntaxError("names that begin with '_' cannot be imported", position);
      const std::string local = tokens_.skip_name("as") ? parse_name("a name for it here") : name;
      require_assignable(local, position);
      import.names.emplace_back(name, local);
      if (!tokens_.skip_symbol(",")) break;
    }
    import.with_context = parse_context(false);
    return import;
  }

  void parse_signature(ast::Routine& routine) {
    tokens_.expect_symbol("(");
    while (!tokens_.is_symbol(")")) {
      if (!routine.parameters.empty()) tokens_.expect_symbol(",");
      const uint32_t position = tokens_.current().position;
      const std::string name = parse_name("the name of a parameter");
      require_assignable(name, position);
      if (std::find(routine.parameters.begin(), routine.parameters.end(), name) !=
          routine.parameters.end()) {
        throw SyntaxError("parameter '" + name + "' is given twice", position);
      }
      if (tokens_.skip_symbol("=")) {
        routine.defaults.push_back(expressions_.parse());
      } else if (!routine.defaults.empty()) {
        tokens_.fail("a parameter without default follows one with a default");
      }
      routine.parameters.push_back(name);
    }
    tokens_.take();
  }

  void parse_routine_body(ast::Routine& routine, std::string_view end_name) {
    const Token routine_tag = tag_;
    NameUses uses;
    expressions_.begin_tracking(&uses);
    routine.body = parse_tag_body({end_name}, Scope::captured);
    expressions_.end_tracking();
    tokens_.take();
    const std::vector<std::string>& parameters = routine.parameters;
    const size_t required = parameters.size() - routine.defaults.size();
    const auto first_default = parameters.begin() + static_cast<std::ptrdiff_t>(required);
    if (uses.count("caller") &&
        std::find(parameters.begin(), first_default, "caller") != first_default) {
      throw SyntaxError("the parameter 'caller' needs a default", routine_tag.position);
    }
    for (const std::string& name : parameters) uses.erase(name);
    routine.uses_caller = uses.count("caller") > 0;
    routine.uses_named = uses.count("kwargs") > 0;
    routine.uses_positional = uses.count("varargs") > 0;
  }

  ast::MacroDefinition parse_macro() {
    ast::MacroDefinition macro;
    const uint32_t position = tokens_.current().position;
    macro.routine.name = parse_name("the name of a macro");
    require_assignable(macro.routine.name, position);
    parse_signature(macro.routine);
    parse_routine_body(macro.routine, "endmacro");
    return macro;
  }

  ast::CallBlock parse_call_block() {
    ast::CallBlock block;
    if (tokens_.is_symbol("(")) parse_signature(block.routine);
    const Token start = tokens_.current();
    block.call = expressions_.parse();
    if (!std::holds_alternative<ast::Call>(block.call->node)) {
      throw SyntaxError("expected a call", start.position, "{% call name(…) %}");
    }
    parse_routine_body(block.routine, "endcall");
    return block;
  }

  ast::FilterBlock parse_filter_block() {
    ast::FilterBlock block;
    block.filter = expressions_.parse_filter_chain();
    block.body = parse_tag_body({"endfilter"});
    tokens_.take();
    return block;
  }

  ast::With parse_with() {
    ast::With with;
    while (!tokens_.is(Token::Kind::tag_end)) {
      if (!with.assignments.empty()) tokens_.expect_symbol(",");
      ast::Target target = parse_target("=");
      tokens_.expect_symbol("=");
      with.assignments.emplace_back(std::move(target), expressions_.parse());
    }
    with.body = parse_tag_body({"endwith"});
    tokens_.take();
    return with;
  }

  /// `{% autoescape false %}` changes nothing but the scope; there is no escaping to switch on.
  ast::With parse_autoescape() {
    const uint32_t position = tokens_.current().position;
    const ast::ExpressionPtr value = expressions_.parse();
    const auto* constant = std::get_if<ast::Constant>(&value->node);
    if (!constant || is_truthy(constant->value))
      throw SyntaxError("autoescaping is not supported", position, "use the filter 'escape'");
    ast::With scope;
    scope.body = parse_tag_body({"endautoescape"});
    tokens_.take();
    return scope;
  }

  void parse_print(ast::Body& body) {
    while (!tokens_.is(Token::Kind::tag_end)) {
      const uint32_t position = tokens_.current().position;
      body.push_back({ast::Print{expressions_.parse()}, position});
      if (!tokens_.is(Token::Kind::tag_end)) tokens_.expect_symbol(",");
    }
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  ast::Template template_;
  Token tag_{};  ///< the tag that is being parsed
  Scope scope_ = Scope::top;
  bool extends_ = false;  ///< an `extends` that certainly runs was met
  int loops_ = 0;         ///< around the current tag
  int nesting_ = 0;
};

}  // namespace

ast::Template parse_template(std::string_view text) { return Parser(text).parse(); }

}  // namespace forge::jinja
