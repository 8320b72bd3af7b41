// Functions: signature, directives, and the statements of a body other than instructions.
#include "sim/ptx/parse/parser_state.h"

namespace kernwright::sim::ptx {

void Parser::parse_function_directives(Function& function) {
  constexpr std::uint64_t kMax = 0x7fffffff;
  const auto triple = [&](std::array<std::uint32_t, 3>& to) {
    to = {1, 1, 1};
    for (std::size_t i = 0; i < 3; ++i) {
      to[i] = static_cast<std::uint32_t>(reader_.take_count("a number of threads", kMax));
      if (!reader_.accept(',')) break;
    }
  };
  while (reader_.peek().kind == TokenKind::dotted) {
    const Token word = reader_.take();
    if (word.text == "maxntid") {
      triple(function.max_threads);
    } else if (word.text == "reqntid") {
      triple(function.required_threads);
    } else if (word.text == "minnctapersm" || word.text == "maxnctapersm") {
      function.min_blocks =
          static_cast<std::uint32_t>(reader_.take_count("a number of blocks", kMax));
    } else if (word.text == "maxnreg") {
      function.max_registers = static_cast<std::uint32_t>(reader_.take_count("a number", kMax));
    } else if (word.text == "noreturn") {
      function.noreturn = true;
    } else if (word.text == "pragma") {
      parse_pragma(word.line);
    } else if (word.text == "reqnctapercluster") {
      triple(function.required_cluster);
    } else if (word.text == "maxclusterrank" || word.text == "abi_preserve" ||
               word.text == "abi_preserve_control") {
      reader_.take_count("a number", kMax);
    } else if (word.text == "explicitcluster") {
      function.explicit_cluster = true;
    } else if (word.text != "blocksareclusters") {
      reader_.fail_at(word.line, format(".{} is no directive of a function", word.text));
    }
  }
}

void Parser::parse_function(bool is_entry, const Linkage& linkage) {
  Function function;
  function.is_entry = is_entry;
  function.is_extern = linkage.is_extern;
  function.is_weak = linkage.is_weak;
  function.ptx_line = reader_.peek().line;
  while (reader_.accept_dotted("attribute")) reader_.skip_attribute();
  if (reader_.peek().is('(')) {
    if (is_entry) reader_.fail("an entry returns nothing");
    function.returns = variables_.parameters();
  }
  function.name = reader_.take_word("the name of a function");
  if (reader_.peek().is('(')) function.params = variables_.parameters();
  parse_function_directives(function);
  if (reader_.peek().is('{')) function.has_body = true;
  const bool has_body = function.has_body;
  const std::uint32_t index = add_function(std::move(function));
  if (has_body) return parse_body(index);
  reader_.expect(';', "after the declaration of a function");
}

std::uint32_t Parser::add_function(Function&& function) {
  const auto next = static_cast<std::uint32_t>(module_->functions.size());
  const auto [known, is_new] = functions_.emplace(function.name, next);
  if (is_new) {
    module_->functions.push_back(std::move(function));
    return next;
  }
  Function& old = module_->functions[known->second];
  if (old.has_body && function.has_body) {
    reader_.fail_at(function.ptx_line, format("{} is defined twice", function.name));
  }
  if (old.params.size() != function.params.size() ||
      old.returns.size() != function.returns.size() || old.is_entry != function.is_entry) {
    reader_.fail_at(function.ptx_line, format("{} is declared in two ways", function.name));
  }
  if (function.has_body) old = std::move(function);
  return known->second;
}

void Parser::parse_body(std::uint32_t index) {
  current_ = index;
  reader_.enter_function();
  operands_.enter(function());
  scopes_ = {};
  const std::int32_t line = reader_.peek().line;
  reader_.expect('{', "before the body");
  scopes_.push();
  while (scopes_.depth() > 0) {
    if (reader_.peek().kind == TokenKind::end) {
      reader_.fail(format("the body of {}, which begins at PTX line {}, is not closed",
                          function().name, line));
    }
    parse_statement();
  }
  if (!scopes_.unsettled().empty()) {
    const PendingLabel& missing = scopes_.unsettled().front();
    reader_.fail_at(missing.line, format("the label {} is not defined", missing.name));
  }
  reader_.leave_function();
}

void Parser::parse_statement() {
  const Token& token = reader_.peek();
  if (token.is('{')) {
    if (scopes_.depth() >= static_cast<std::size_t>(kMaxScopes))
      reader_.fail("scopes are nested too deeply");
    reader_.take();
    return scopes_.push();
  }
  if (reader_.accept('}')) return close_scope();
  if (reader_.accept(';')) return;
  if (token.kind == TokenKind::dotted) return parse_body_directive();
  if (token.kind == TokenKind::word && reader_.peek_next().is(':')) return parse_label();
  if (token.kind == TokenKind::word || token.is('@')) return parse_instruction();
  reader_.fail(format("'{}' begins no statement", token.text.substr(0, 60)));
}

void Parser::close_scope() {
  scopes_.pop([this](const PendingLabel& pending, std::uint32_t label) {
    if (pending.instruction == kNoInstruction) {
      function().labels[pending.owner].branch_targets[pending.operand] = label;
    } else {
      function().body[pending.instruction].operands[pending.operand].label = label;
    }
  });
}

void Parser::parse_body_directive() {
  const Token word = reader_.take();
  if (word.text == "reg") return parse_registers();
  if (word.text == "shared") return parse_body_variables(Space::shared);
  if (word.text == "local") return parse_body_variables(Space::local);
  if (word.text == "param") return parse_body_variables(Space::param);
  if (word.text == "global") return parse_body_variables(Space::global);
  if (word.text == "const") return parse_body_variables(Space::constant);
  if (word.text == "loc") return parse_loc();
  if (word.text == "file") return parse_file();
  if (word.text == "section") return skip_section();
  if (word.text == "pragma") return parse_pragma(word.line);
  reader_.fail_at(word.line, format(".{} is not known inside a function", word.text));
}

void Parser::parse_body_variables(Space space) {
  const Variable first = variables_.declaration(space);
  do {
    Variable variable = variables_.named(first, kMaxBodyVariableBytes);
    const auto index = static_cast<std::uint32_t>(function().variables.size());
    if (!scopes_.declare(variable.name, {LocalName::Kind::variable, index})) {
      reader_.fail_at(variable.ptx_line, format("{} is declared twice", variable.name));
    }
    function().variables.push_back(std::move(variable));
  } while (reader_.accept(','));
  reader_.expect(';', "after the variable");
}

void Parser::parse_label() {
  Label label;
  label.name = reader_.take().text;
  reader_.expect(':', "after the label");
  label.instruction = static_cast<std::uint32_t>(function().body.size());
  const auto index = static_cast<std::uint32_t>(function().labels.size());
  if (!scopes_.declare_label(label.name, index)) {
    reader_.fail(format("the label {} is defined twice", label.name));
  }
  if (reader_.accept_dotted("branchtargets")) {
    parse_branch_targets(label, index);
  } else if (reader_.accept_dotted("calltargets")) {
    parse_call_targets(label);
  } else if (reader_.accept_dotted("callprototype")) {
    parse_prototype(label);
  }
  function().labels.push_back(std::move(label));
}

void Parser::parse_branch_targets(Label& label, std::uint32_t index) {
  do {
    PendingLabel pending;
    pending.instruction = kNoInstruction;
    pending.operand = static_cast<std::uint32_t>(label.branch_targets.size());
    pending.owner = index;
    pending.line = reader_.peek().line;
    pending.name = reader_.take_word("a branch target");
    label.branch_targets.push_back(0);
    scopes_.wait_for(pending);
  } while (reader_.accept(','));
  reader_.expect(';', "after the branch targets");
}

void Parser::parse_call_targets(Label& label) {
  do {
    const std::string_view name = reader_.take_word("a function");
    const auto found = find_function(name);
    if (!found) reader_.fail(format("{} is not declared", name));
    label.call_targets.push_back(*found);
  } while (reader_.accept(','));
  reader_.expect(';', "after the call targets");
}

void Parser::parse_prototype(Label& label) {
  label.is_prototype = true;
  if (reader_.peek().is('(')) label.returns = variables_.parameters();
  reader_.take_word("_ or a name");
  if (reader_.peek().is('(')) label.params = variables_.parameters();
  while (reader_.peek().kind == TokenKind::dotted) {
    const Token word = reader_.take();
    if (reader_.peek().kind == TokenKind::number) reader_.take();
    if (word.text != "noreturn" && !word.text.starts_with("abi_preserve")) {
      reader_.fail_at(word.line, format(".{} is no directive of a prototype", word.text));
    }
  }
  reader_.expect(';', "after the prototype");
}

}  // namespace kernwright::sim::ptx
