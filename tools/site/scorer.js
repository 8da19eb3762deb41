// SPDX-License-Identifier: Apache-2.0
// How the site's search ranks pages: those for users come before notes on how the library is made and what was measured.
var insidePages = /^(docs\/(decisions|rooms)\/|bench\/|tests\/|src\/|CHANGELOG|CONTRIBUTING|layers)/;
var Scorer = {
  score: ([page, , , , score]) => score + (insidePages.test(page) ? -20 : page.startsWith("docs/") ? 10 : 0),

  // As in Sphinx.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
