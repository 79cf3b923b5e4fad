# read_json(text) puts every value of a JSON text into `json` under its dotted path:
# {"a":{"b":[1,"x"]}} gives json["a.b.0"] = 1 and json["a.b.1"] = "x". An empty object or list gives
# nothing, null the text "null". Returns whether the text was JSON throughout.

function read_json(text) {
  json_text = text
  json_at = 1
  json_wrong = 0
  json_value("")
  json_space()
  return !json_wrong && json_at > length(json_text)
}

function json_space() {
  while (substr(json_text, json_at, 1) ~ /^[ \t\r\n]$/) json_at++
}

function json_take(wanted) {
  json_space()
  if (substr(json_text, json_at, 1) != wanted) return 0
  json_at++
  return 1
}

function json_value(path,    word) {
  json_space()
  if (json_wrong || json_at > length(json_text)) { json_wrong = 1; return }
  if (json_take("{")) { json_members(path); return }
  if (json_take("[")) { json_items(path); return }
  if (substr(json_text, json_at, 1) == "\"") { json[path] = json_string(); return }
  if (!match(substr(json_text, json_at, 64), /^(true|false|null|-?[0-9][0-9.eE+-]*)/)) {
    json_wrong = 1
    return
  }
  json[path] = substr(json_text, json_at, RLENGTH)
  json_at += RLENGTH
}

function json_members(path,    key) {
  if (json_take("}")) return
  do {
    json_space()
    if (substr(json_text, json_at, 1) != "\"") { json_wrong = 1; return }
    key = json_string()
    if (!json_take(":")) { json_wrong = 1; return }
    json_value(path == "" ? key : path "." key)
  } while (!json_wrong && json_take(","))
  if (!json_take("}")) json_wrong = 1
}

function json_items(path,    place) {
  if (json_take("]")) return
  place = 0
  do json_value(path "." place++); while (!json_wrong && json_take(","))
  if (!json_take("]")) json_wrong = 1
}

# Of the escapes those of one letter; \uXXXX stays as it is, since no path that forge writes has it.
function json_string(    letter, text) {
  json_at++
  text = ""
  while (json_at <= length(json_text)) {
    if (match(substr(json_text, json_at), /^[^"\\]+/)) {
      text = text substr(json_text, json_at, RLENGTH)
      json_at += RLENGTH
    }
    letter = substr(json_text, json_at++, 1)
    if (letter == "\"") return text
    letter = substr(json_text, json_at++, 1)
    text = text (letter == "n" ? "\n" : letter == "t" ? "\t" : letter == "u" ? "\\u" : letter)
  }
  json_wrong = 1
  return text
}

# A text as JSON.
function quoted(text) {
  gsub(/\\/, "\\\\", text)
  gsub(/"/, "\\\"", text)
  gsub(/[\001-\037]/, " ", text)
  return "\"" text "\""
}
