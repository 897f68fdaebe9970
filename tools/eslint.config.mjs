// The console's rules. No import: the file stands outside the folder that eslint is installed in.
const browser = ["document", "window", "location", "history", "fetch", "localStorage", "EventSource", "TextEncoder", "globalThis", "performance", "setTimeout", "clearTimeout", "addEventListener", "URLSearchParams", "HTMLElement", "HTMLTableCellElement"];
const rules = ["no-undef", "no-unused-vars", "no-shadow", "no-var", "prefer-const", "eqeqeq", "no-dupe-keys", "no-unreachable", "no-fallthrough", "no-const-assign", "no-import-assign", "no-self-assign", "no-redeclare", "no-eval", "no-implied-eval", "no-new-func", "no-script-url", "no-promise-executor-return", "valid-typeof", "use-isnan", "no-unsafe-optional-chaining", "no-duplicate-imports"];

export default [{
  languageOptions: { ecmaVersion: 2024, sourceType: "module", globals: Object.fromEntries(browser.map((name) => [name, "readonly"])) },
  rules: {
    ...Object.fromEntries(rules.map((name) => [name, "error"])),
    // Text of the server never becomes markup.
    "no-restricted-properties": ["error", { property: "innerHTML" }, { property: "outerHTML" }, { property: "insertAdjacentHTML" }, { object: "document", property: "write" }],
  },
}];
