#include "cache/key_text.h"

#include <algorithm>
#include <utility>

namespace kiln {
namespace {

constexpr std::string_view kPlan = "plan";
// More than any key text has fields.
constexpr int64_t kPlanDistance = 1000;

using Lines = std::vector<std::string_view>;

struct ParsedKeyText {
  std::vector<std::pair<std::string_view, std::string_view>> fields;
  Lines plan;
};

std::string_view TakeLine(std::string_view* rest) {
  const size_t end = std::min(rest->find('\n'), rest->size());
  const std::string_view line = rest->substr(0, end);
  rest->remove_prefix(std::min(end + 1, rest->size()));
  return line;
}

std::string_view WithoutLeadingSpaces(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text;
}

// Whether a line of the plan is "field=value" of a field above it.
bool Restates(const ParsedKeyText& text, std::string_view line) {
  const size_t equals = std::min(line.find('='), line.size());
  return std::any_of(
      text.fields.begin(), text.fields.end(), [&](const auto& field) {
        return field.first == line.substr(0, equals) && equals < line.size() &&
               field.second == line.substr(equals + 1);
      });
}

ParsedKeyText Parse(std::string_view text) {
  ParsedKeyText parsed;
  bool in_plan = false;
  while (!text.empty()) {
    const std::string_view line = TakeLine(&text);
    if (in_plan) {
      if (!Restates(parsed, line)) parsed.plan.push_back(line);
      continue;
    }
    const size_t colon = std::min(line.find(':'), line.size());
    const std::string_view field = line.substr(0, colon);
    const std::string_view value =
        WithoutLeadingSpaces(line.substr(std::min(colon + 1, line.size())));
    in_plan = field == kPlan;
    if (!in_plan) parsed.fields.emplace_back(field, value);
    if (in_plan && !value.empty()) parsed.plan.push_back(value);
  }
  return parsed;
}

std::string_view ValueOf(const ParsedKeyText& text, std::string_view field) {
  for (const auto& candidate : text.fields) {
    if (candidate.first == field) return candidate.second;
  }
  return "";
}

bool Has(const ParsedKeyText& text, std::string_view field) {
  return std::any_of(
      text.fields.begin(), text.fields.end(),
      [&](const auto& candidate) { return candidate.first == field; });
}

std::vector<KeyTextDifference> CompareFields(const ParsedKeyText& wanted,
                                             const ParsedKeyText& found) {
  std::vector<KeyTextDifference> differences;
  for (const auto& [field, value] : wanted.fields) {
    const std::string_view other = ValueOf(found, field);
    if (value != other || !Has(found, field)) {
      differences.push_back(
          {std::string(field), std::string(value), std::string(other)});
    }
  }
  for (const auto& [field, value] : found.fields) {
    if (!Has(wanted, field)) {
      differences.push_back({std::string(field), "", std::string(value)});
    }
  }
  return differences;
}

size_t CommonPrefix(const Lines& a, const Lines& b) {
  size_t head = 0;
  while (head < std::min(a.size(), b.size()) && a[head] == b[head]) ++head;
  return head;
}

std::string LineAt(const Lines& lines, size_t index) {
  return index < lines.size() ? std::string(lines[index]) : "";
}

// Lines of the longer plan that are neither in the common head nor in the
// common tail.
int64_t PlanDistance(const Lines& a, const Lines& b) {
  const size_t head = CommonPrefix(a, b);
  const size_t shorter = std::min(a.size(), b.size());
  size_t tail = 0;
  while (head + tail < shorter &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) {
    ++tail;
  }
  return static_cast<int64_t>(std::max(a.size(), b.size()) - head - tail);
}

}  // namespace

std::vector<KeyTextDifference> CompareKeyTexts(std::string_view wanted,
                                               std::string_view found) {
  const ParsedKeyText a = Parse(wanted);
  const ParsedKeyText b = Parse(found);
  std::vector<KeyTextDifference> differences = CompareFields(a, b);
  if (a.plan != b.plan) {
    const size_t first = CommonPrefix(a.plan, b.plan);
    differences.push_back(
        {std::string(kPlan), LineAt(a.plan, first), LineAt(b.plan, first)});
  }
  return differences;
}

int64_t KeyTextDistance(std::string_view wanted, std::string_view found) {
  const ParsedKeyText a = Parse(wanted);
  const ParsedKeyText b = Parse(found);
  const auto fields = static_cast<int64_t>(CompareFields(a, b).size());
  if (a.plan == b.plan) return fields;
  return fields + kPlanDistance * PlanDistance(a.plan, b.plan);
}

}  // namespace kiln
