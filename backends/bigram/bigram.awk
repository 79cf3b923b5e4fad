# The job of a request: counts pairs of tokens, and says how well they foretell the next one.
#
# P(next b | a) = (pairs of a and b + P(b)) / (pairs that begin with a + 1), where
# P(b) = (tokens b + 1) / (tokens + vocabulary): a pair that was never seen is as likely as its
# second token. The loss of a training step is that of its rows before they are counted.

BEGIN {
  if ((getline line < request) <= 0 || !read_json(line)) refuse("the request is no JSON", "")
  job = json["job"]
  say_environment()
  if (job == "describe") { say_support(); exit 0 }
  if (job != "train" && job != "evaluate") refuse("this backend cannot do the job " job, "")
  vocabulary = number("experiment.tokenizer.vocab_size")
  seq_len = number("experiment.train.seq_len")
  check_support()
  if (job == "evaluate") evaluate_model()
  train()
}

function say(text) { print text; fflush() }

function refuse(message, field) {
  say("{\"event\":\"failed\",\"message\":" quoted(message) ",\"field\":" quoted(field) ",\"hint\":\"\"}")
  exit 2
}

function number(key) {
  if (!(key in json)) refuse("the request lacks " key, "")
  return json[key] + 0
}

function say_environment() {
  say("{\"event\":\"environment\",\"device_type\":\"cpu\",\"device_name\":" quoted(processor) ",\"threads\":1," \
      "\"memory_bytes\":" memory ",\"devices\":[\"cpu\"],\"libraries\":{}}")
}

function say_support() {
  say("{\"event\":\"supports\",\"jobs\":[\"describe\",\"train\",\"evaluate\"],\"config\":{" \
      "\"data.source\":[\"toy_stories\",\"text\",\"jsonl\"],\"data.rows\":[\"packed\"]," \
      "\"data.order\":[\"sequential\"],\"train.document_mask\":[false]," \
      "\"train.gradient_slots\":[1],\"train.initial_weights\":[\"\"]}}")
}

function check_support() {
  if (job == "train" && json["experiment.data.order"] != "sequential")
    refuse("rows are read in their order only", "data.order")
  if (json["experiment.data.rows"] != "packed") refuse("rows are packed only", "data.rows")
  if (json["experiment.train.document_mask"] == "true")
    refuse("rows are not divided into documents", "train.document_mask")
  if (json["experiment.train.gradient_slots"] > 1)
    refuse("counts are added in one way only", "train.gradient_slots")
  if (json["experiment.train.initial_weights"] != "")
    refuse("a table of pairs begins empty", "train.initial_weights")
}

function now(    seconds) {
  "date +%s.%N" | getline seconds
  close("date +%s.%N")
  return seconds + 0
}

# The most memory that this process had, in bytes; 0 where the system does not say.
function peak_memory(    line, part, bytes) {
  bytes = 0
  while ((getline line < "/proc/self/status") > 0) {
    split(line, part, " ")
    if (part[1] == "VmHWM:") bytes = part[2] * 1024
  }
  close("/proc/self/status")
  return bytes
}

function in_shell(text) {
  gsub(/'/, "'\\''", text)
  return "'" text "'"
}

function exists(path,    line, found) {
  found = (getline line < path) >= 0
  close(path)
  return found
}

# --- Token files ------------------------------------------------------------------------------

# Opens the first token file of a list of the request: sets path, width, rows.
function open_tokens(list, file,    words, count, command, head) {
  file["path"] = json[list ".0.path"]
  if (file["path"] == "" || (list ".1.path") in json) refuse("rows come from one file", "data.source")
  command = "od -An -v -tu4 -w32 -N32 " in_shell(file["path"])
  words = ""
  command | getline words
  close(command)
  split(words, head, " ")
  if (head[1] != 1735552870 || head[2] != 1802466405 || head[3] != 2)
    refuse("'" file["path"] "' is no token file of version 2", "")
  file["width"] = head[4]
  count = head[5] + head[6] * 4294967296
  file["ids"] = count
  file["rows"] = number(list ".0.rows")
  if (file["rows"] == 0) file["rows"] = int((count - 1) / seq_len)
  if (file["rows"] < 1 || (file["rows"] - 1) * seq_len + 2 > count)
    refuse("'" file["path"] "' holds fewer rows than are asked for", "")
}

# A command that writes the ids from a row on, one a line.
function reader(file, row) {
  return "od -An -v -tu" file["width"] " -w" file["width"] " -j" \
         sprintf("%.0f", 72 + row * seq_len * file["width"]) \
         sprintf(" -N%.0f ", (file["ids"] - row * seq_len) * file["width"]) in_shell(file["path"])
}

# --- The model --------------------------------------------------------------------------------

function loss_of(first, second) {
  return -log((pairs[first, second] + (seen[second] + 1) / (total + vocabulary)) / (begun[first] + 1))
}

function learn(first, second) {
  pairs[first, second]++
  begun[first]++
  seen[second]++
  total++
}

# --- Evaluation -------------------------------------------------------------------------------

# Sets eval_loss and eval_tokens.
function evaluate(file, step,    command, row, i, id, before, sum, tokens) {
  command = reader(file, 0)
  command | getline before
  before += 0
  for (row = 0; row < file["rows"]; row++) {
    for (i = 0; i < seq_len; i++) {
      if ((command | getline id) <= 0) break
      id += 0
      # The table is only looked at: awk would make an entry of a pair that it is asked for.
      sum += ((before, id) in pairs) ? loss_of(before, id) : unseen_loss(before, id)
      tokens++
      before = id
    }
    say("{\"event\":\"progress\",\"step\":" step ",\"phase\":\"evaluate\",\"fraction\":" \
        (row + 1) / file["rows"] "}")
  }
  close(command)
  eval_loss = sum / tokens
  eval_tokens = tokens
}

function unseen_loss(first, second,    count, from) {
  count = (second in seen) ? seen[second] : 0
  from = (first in begun) ? begun[first] : 0
  return -log((count + 1) / (total + vocabulary) / (from + 1))
}

function evaluate_model(    began) {
  open_tokens("evaluation_tokens", held_out)
  if (json["initial_weights"] != "") load(json["initial_weights"])
  began = now()
  evaluate(held_out, 0)
  say(sprintf("{\"event\":\"result\",\"values\":{\"loss\":%.17g,\"tokens\":%d,\"seconds\":%.6f}}",
              eval_loss, eval_tokens, now() - began))
  exit 0
}

# --- Training ---------------------------------------------------------------------------------

function train(    parameters, completed, position) {
  max_steps = number("experiment.train.max_steps")
  batch = number("experiment.train.batch_size")
  log_every = number("experiment.train.log_every")
  eval_every = number("experiment.train.eval_every")
  save_every = number("experiment.train.checkpoint_every")
  open_tokens("train_tokens", rows)
  open_tokens("evaluation_tokens", held_out)
  step = elapsed = window_steps = window_loss = 0
  train_loss = "null"
  if (json["resume_from"] != "") load(json["resume_from"])
  first_step = step
  parameters = vocabulary * (vocabulary + 1)
  say(sprintf("{\"event\":\"started\",\"parameters\":%.0f,\"first_step\":%d,\"max_steps\":%d," \
              "\"tokens_per_step\":%d}", parameters, step, max_steps, batch * seq_len))
  began = now() - elapsed
  window_began = now()
  timed_from = step
  evaluated = saved = -1
  while (step < max_steps && !exists(stop)) {
    train_step()
    say("{\"event\":\"progress\",\"step\":" step ",\"phase\":\"train\",\"fraction\":" step / max_steps "}")
    if (step % log_every == 0) { report(); window_loss = window_steps = 0 }
    if (eval_every > 0 && step % eval_every == 0) evaluate_now()
    if (save_every > 0 && step % save_every == 0) save()
    if (exists(save_now)) { run("rm -f " in_shell(save_now)); save() }
  }
  completed = step >= max_steps
  # In the checkpoint the window stays open: a run that goes on from there has its mean.
  if (completed && window_steps > 0) report()
  if (completed) evaluate_now()
  if (step > 0) save()
  elapsed = now() - began
  say(sprintf("{\"event\":\"finished\",\"completed\":%s,\"step\":%d,\"eval_loss\":%s,\"train_loss\":%s," \
              "\"tokens_per_second\":%.6g,\"wall_seconds\":%.6f,\"peak_memory_bytes\":%.0f," \
              "\"peak_resident_bytes\":%.0f,\"parameters\":%.0f}",
              completed ? "true" : "false", step,
              evaluated == step ? sprintf("%.17g", eval_loss) : "null", train_loss,
              elapsed > 0 ? step * batch * seq_len / elapsed : 0, elapsed, peak_memory(), peak_memory(),
              parameters))
  exit completed ? 0 : 3
}

# Rows are read in their order, so that one reader serves all steps of an epoch.
function train_step(    place, row, i, id, before, sum) {
  for (place = step * batch; place < (step + 1) * batch; place++) {
    row = place % rows["rows"]
    if (row == 0 || !training) {
      if (training) close(training)
      training = reader(rows, row)
      training | getline last_id
    }
    before = last_id + 0
    for (i = 0; i < seq_len; i++) {
      training | getline id
      id += 0
      sum += loss_of(before, id)
      learn(before, id)
      before = id
    }
    last_id = before
  }
  step++
  window_loss += sum / (batch * seq_len)
  window_steps++
}

function report(    time, seconds, speed) {
  time = now()
  seconds = time - window_began
  speed = "null"
  if (seconds > 0 && step > timed_from)
    speed = sprintf("%.6g", (step - timed_from) * batch * seq_len / seconds)
  train_loss = sprintf("%.17g", window_loss / window_steps)
  say(sprintf("{\"event\":\"train\",\"step\":%d,\"tokens\":%.0f,\"loss\":%s,\"learning_rate\":0," \
              "\"gradient_norm\":0,\"tokens_per_second\":%s,\"elapsed_seconds\":%.6f}",
              step, step * batch * seq_len, train_loss, speed, time - began))
  window_began = now()
  timed_from = step
}

function evaluate_now(    before) {
  if (evaluated == step) return
  before = now()
  evaluate(held_out, step)
  say(sprintf("{\"event\":\"evaluation\",\"step\":%d,\"loss\":%.17g,\"tokens\":%d,\"seconds\":%.6f}",
              step, eval_loss, eval_tokens, now() - before))
  evaluated = step
  window_began += now() - before
}

# --- Checkpoints ------------------------------------------------------------------------------

function run(command) {
  if (system(command) == 0) return
  say("{\"event\":\"failed\",\"message\":" quoted("this went wrong: " command) ",\"field\":\"\",\"hint\":\"\"}")
  exit 1
}

# Written aside, synced, renamed; forge adds the manifest, and removes old ones.
function save(    within, name, aside, file, key, part, bytes, command) {
  if (saved == step) return
  # A link in the place of the folder would lead elsewhere: what is done is done from within it.
  within = "cd " in_shell(json["run_dir"]) " && mkdir -p checkpoints && run=$(pwd -P) && " \
           "cd checkpoints && test \"$(pwd -P)\" = \"$run/checkpoints\" && "
  name = sprintf("%09d", step)
  aside = ".tmp-" name
  run(within "rm -rf " aside " && mkdir " aside)
  file = json["run_dir"] "/checkpoints/" aside "/counts.txt"
  printf "%d %.6f %d %.17g %s\n", step, now() - began, window_steps, window_loss, train_loss > file
  bytes = 0
  for (key in pairs) {
    split(key, part, SUBSEP)
    if (pairs[key] > 0) print part[1], part[2], pairs[key] > file
  }
  close(file)
  command = "wc -c < " in_shell(file)
  command | getline bytes
  close(command)
  run(within "sync " aside "/counts.txt && rm -rf " name " && mv -T " aside " " name " && sync .")
  say("{\"event\":\"checkpoint\",\"step\":" step ",\"path\":\"checkpoints/" name "\",\"bytes\":" bytes + 0 "}")
  saved = step
}

function load(folder,    file, line, part) {
  file = folder "/counts.txt"
  if ((getline line < file) <= 0) refuse("there is no " file, "")
  split(line, part, " ")
  step = part[1] + 0
  elapsed = part[2] + 0
  window_steps = part[3] + 0
  window_loss = part[4] + 0
  train_loss = part[5]
  while ((getline line < file) > 0) {
    split(line, part, " ")
    pairs[part[1], part[2]] = part[3]
    begun[part[1]] += part[3]
    seen[part[2]] += part[3]
    total += part[3]
  }
  close(file)
}
