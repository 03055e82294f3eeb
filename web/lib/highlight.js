// Colours of code, by highlight.js. Loaded when the first block of code is complete.
import hljs from "highlight.js/lib/highlight";
import bash from "highlight.js/lib/languages/bash";
import cpp from "highlight.js/lib/languages/cpp";
import cs from "highlight.js/lib/languages/cs";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import http from "highlight.js/lib/languages/http";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import lua from "highlight.js/lib/languages/lua";
import makefile from "highlight.js/lib/languages/makefile";
import markdown from "highlight.js/lib/languages/markdown";
import php from "highlight.js/lib/languages/php";
import powershell from "highlight.js/lib/languages/powershell";
import protobuf from "highlight.js/lib/languages/protobuf";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import shell from "highlight.js/lib/languages/shell";
import sql from "highlight.js/lib/languages/sql";
import swift from "highlight.js/lib/languages/swift";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const LANGUAGES = { bash, cpp, cs, css, diff, dockerfile, go, http, ini, java, javascript, json, kotlin, lua, makefile, markdown, php, powershell,
  protobuf, python, ruby, rust, shell, sql, swift, typescript, xml, yaml };
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

const CHARACTERS = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };

// highlight.js writes HTML. Its spans become elements and everything else text, so nothing of the code can become HTML.
function nodes_of(html) {
  const top = document.createDocumentFragment(), open = [top];
  let text = "";
  const flush = () => {
    if (text) open.at(-1).append(document.createTextNode(text));
    text = "";
  };
  for (const [part, name] of html.matchAll(/<span class="([\w -]*)">|<\/span>|&(?:amp|lt|gt|quot|#x27);|[^<&]+|[<&]/g)) {
    if (name !== undefined) {
      flush();
      const span = document.createElement("span");
      span.className = name;
      open.at(-1).append(span);
      open.push(span);
    } else if (part === "</span>") {
      flush();
      if (open.length > 1) open.pop();
    } else text += CHARACTERS[part] ?? part;
  }
  flush();
  return top;
}

// A fragment, or null: the language is unknown.
export function highlighted(code, language) {
  if (!hljs.getLanguage(language)) return null;
  return nodes_of(hljs.highlight(language, code, true).value);
}
