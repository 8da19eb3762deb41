// SPDX-License-Identifier: Apache-2.0
#include "cli/report_frame.hpp"

namespace gemmery::cli {
namespace {

// Colours of marks have a contrast of 3 or more with the background, those of text of 7, in both
// themes.
constexpr std::string_view style = R"(
:root { color-scheme: light dark;
  --page: #ffffff; --card: #f6f7f9; --ink: #1b1f24; --soft: #4a525c; --line: #c4cad2;
  --c0: #0b62a4; --c1: #c44601; --c2: #00795a; --c3: #a3417f; --c4: #6d5a00; --c5: #4b4b9f; }
@media (prefers-color-scheme: dark) { :root {
  --page: #14171b; --card: #1d2127; --ink: #eceff3; --soft: #b6bec9; --line: #454d57;
  --c0: #6cb6ff; --c1: #ff9e64; --c2: #4cd3a5; --c3: #f291c8; --c4: #e0c341; --c5: #b4b4ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: .5rem 0; } h2 { font-size: 1.25rem; margin: 0 0 .25rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .25rem; overflow-wrap: anywhere; }
p { margin: 0 0 .75rem; color: var(--soft); max-width: 46rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 1rem; margin: 1rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr));
  gap: 1rem; }
ul.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0;
  margin: .5rem 0; }
ul.legend li { display: flex; align-items: center; gap: .4rem; }
.row { display: grid; grid-template-columns: minmax(0, 1fr) max-content; gap: 0 .75rem;
  margin: .5rem 0; }
.row .name { overflow-wrap: anywhere; } .row .value { font-variant-numeric: tabular-nums; }
.row svg { grid-column: 1 / -1; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .9rem; }
caption { text-align: left; color: var(--soft); padding-bottom: .25rem; }
th, td { text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td.name { overflow-wrap: anywhere; min-width: 12rem; }
th.number, td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
summary { cursor: pointer; padding: .25rem 0; }
svg.picture { display: block; }
/* Room for what stands outside the axes. */
.plot { padding: 14px 12px 44px 92px; } .plot svg.picture { overflow: visible; }
 svg text { fill: var(--soft); font: 12px system-ui, sans-serif;
  paint-order: stroke; stroke: var(--card); stroke-width: 4px; }
.axis { stroke: var(--soft); } .grid { stroke: var(--line); }
.roof { stroke: var(--ink); stroke-width: 1.5; }
.one { stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 4 3; }
.whisker { stroke: var(--ink); stroke-width: 2; } .track { fill: var(--line); opacity: .45; }
.mark { stroke: var(--card); stroke-width: 1; } .bar { opacity: .9; }
.dot { opacity: .65; } .box { fill: none; stroke: var(--ink); stroke-width: 1.5; }
.c0 { fill: var(--c0); } .c1 { fill: var(--c1); } .c2 { fill: var(--c2); } .c3 { fill: var(--c3); }
.c4 { fill: var(--c4); } .c5 { fill: var(--c5); }
footer { color: var(--soft); font-size: .9rem; }
@media (max-width: 40rem) { body { padding: .5rem; } section { padding: .75rem; }
  .row { grid-template-columns: 1fr; } .plot { padding-left: 84px; } }
@media print { section { break-inside: avoid; } }
)";

}  // namespace

std::string whole_page(std::string_view title, const Html& content) {
  Html head = trusted("<meta charset=\"utf-8\">");
  head += trusted("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
  head += element("title", text(title)) + element("style", trusted(style));
  const Html footer = element("footer", element("p", text("Written by gemmery bench.")));
  const Html body = element("main", element("h1", text(title)) + content) + footer;
  const Html page =
      element("html", {{"lang", "en"}}, element("head", head) + element("body", body));
  return "<!DOCTYPE html>\n" + page.markup() + "\n";
}

Html section(std::string_view title, std::string_view words, const Html& content) {
  return element("section", element("h2", text(title)) + element("p", text(words)) + content);
}

Html facts_list(const std::vector<std::pair<std::string, std::string>>& facts) {
  Html rows;
  for (const auto& [name, value] : facts)
    rows += element("dt", text(name)) + element("dd", text(value));
  return element("dl", rows);
}

HtmlTable::HtmlTable(std::string_view caption, std::vector<std::string> headings)
    : caption_(caption), headings_(std::move(headings)) {}

void HtmlTable::add_row(const std::vector<std::string>& cells) {
  Html row;
  for (std::size_t column = 0; column < cells.size(); ++column)
    row += element("td", {{"class", is_number(column) ? "number" : "name"}}, text(cells[column]));
  rows_ += element("tr", row);
}

Html HtmlTable::html() const {
  Html head;
  for (std::size_t column = 0; column < headings_.size(); ++column) {
    const std::string_view heading = headings_[column];
    head += element("th", {{"scope", "col"}, {"class", is_number(column) ? "number" : "name"}},
                    text(heading.substr(is_number(column) ? 1 : 0)));
  }
  return element(
      "div", {{"class", "scroll"}, {"tabindex", "0"}},
      element("table", element("caption", text(caption_)) + element("thead", element("tr", head)) +
                           element("tbody", rows_)));
}

}  // namespace gemmery::cli
