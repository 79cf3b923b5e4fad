// Records what Hugging Face's tokenizers (npm install tokenizers tiktoken) make of texts.json with
// the tokenizers of this folder, and with variants of them, which are RFC 7396 patches. Run in a
// folder that has both packages: node record.js FOLDER_OF_THIS_FILE > cases.json
const fs = require('fs');
const path = require('path');
const {createRequire} = require('module');
const here = process.argv[2];
const load = createRequire(path.join(process.cwd(), 'x.js'));
const {Tokenizer} = load('tokenizers');
const {Tiktoken} = load('tiktoken');
const read = name => JSON.parse(fs.readFileSync(path.join(here, name)));
const texts = read('texts.json');

const token = (id, content, options) => ({id, content, single_word: false, lstrip: false,
  rstrip: false, normalized: false, special: false, ...options});
const metaspace = (prepend_scheme, split) => ({normalizer: null,
  pre_tokenizer: {type: 'Metaspace', replacement: '▁', prepend_scheme, split}});
const byteLevel = (add_prefix_space, use_regex) => (
  {type: 'ByteLevel', add_prefix_space, trim_offsets: true, use_regex});
const split = (Regex, behavior, invert) => ({normalizer: null, pre_tokenizer: {type: 'Sequence',
  pretokenizers: [{type: 'Split', pattern: {Regex}, behavior, invert}, byteLevel(false, false)]}});
const replace = {type: 'Replace', pattern: {String: ' '}, content: '▁'};
const added = first => [token(first, '<sep>', {special: true}), token(first + 1, '<l>', {lstrip: true}),
  token(first + 2, '<r>', {rstrip: true}), token(first + 3, '<w>', {single_word: true}),
  token(first + 4, '<n>', {normalized: true})];
const item = id => ({SpecialToken: {id, type_id: 0}});
const around = (before, after, beforeId, afterId) => ({type: 'TemplateProcessing',
  single: [item(before), {Sequence: {id: 'A', type_id: 0}}, item(after)], pair: [],
  special_tokens: {[before]: {id: before, ids: [beforeId], tokens: [before]},
                   [after]: {id: after, ids: [afterId], tokens: [after]}}});
const llama3 = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}" +
  "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const cl100k = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}" +
  "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+";
const bytes = read('byte_level.json');
const characters = read('characters.json');
const sizes = {bytes: Object.keys(bytes.model.vocab).length, characters: Object.keys(characters.model.vocab).length};
const form = type => ({normalizer: {type}});
const variants = {
  'byte_level.json': {
    'as it is': {}, 'no prefix space': {normalizer: null},
    'prefix space unless there': {normalizer: null, pre_tokenizer: byteLevel(true, true)},
    'one piece': {normalizer: null, pre_tokenizer: byteLevel(false, false)},
    'NFC': form('NFC'), 'NFD': form('NFD'), 'NFKC': form('NFKC'), 'NFKD': form('NFKD'),
    'NFC and a prefix space': {normalizer: {type: 'Sequence', normalizers: [{type: 'NFC'}, {type: 'Prepend', prepend: ' '}]}},
    'pattern of Llama 3': split(llama3, 'Isolated', false),
    'pattern of GPT-4': split(cl100k, 'Removed', true),
    'pattern of Qwen 2': split(llama3.replace('{1,3}', ''), 'Isolated', false),
    'whole pieces first': {...split(llama3, 'Isolated', false), model: {ignore_merges: true}},
    'EOS behind': {post_processor: around('<|BOS|>', '<|EOS|>', 0, 2)},
    'no template': {post_processor: null},
    'added tokens': {added_tokens: [...bytes.added_tokens, ...added(sizes.bytes)]},
    'added tokens in NFC': {normalizer: {type: 'NFC'}, added_tokens: [...bytes.added_tokens, ...added(sizes.bytes)]},
  },
  'characters.json': {
    'as it is': {}, 'as Gemma': {normalizer: replace, pre_tokenizer:
      {type: 'Split', pattern: {String: ' '}, behavior: 'MergedWithPrevious', invert: false}},
    'NFC': {normalizer: {normalizers: [{type: 'NFC'}, ...characters.normalizer.normalizers]}},
    'Metaspace always': metaspace('always', true), 'Metaspace first': metaspace('first', false),
    'Metaspace never': metaspace('never', true),
    'EOS behind': {post_processor: around('<s>', '</s>', 1, 2)},
    'added tokens': {...metaspace('first', false), added_tokens: [...characters.added_tokens, ...added(sizes.characters)]},
  },
};

function patched(value, patch) {
  if (patch === null || typeof patch !== 'object' || Array.isArray(patch)) return patch;
  const result = value !== null && typeof value === 'object' && !Array.isArray(value) ? {...value} : {};
  for (const [key, change] of Object.entries(patch)) {
    if (change === null) delete result[key];
    else result[key] = patched(result[key], change);
  }
  return result;
}

async function record() {
  const cases = [];
  for (const [file, patches] of Object.entries(variants)) {
    for (const [name, patch] of Object.entries(patches)) {
      const tokenizer = Tokenizer.fromString(JSON.stringify(patched(read(file), patch)));
      const ids = [];
      for (const text of texts) ids.push((await tokenizer.encode(text)).getIds());
      cases.push({file, name, patch, ids});
    }
  }
  const ranks = fs.readFileSync(path.join(here, 'llama3_like.tiktoken'), 'utf8');
  const tiktoken = new Tiktoken(ranks, {}, llama3);
  cases.push({file: 'llama3_like.tiktoken', name: 'ranks', ids: texts.map(text => [...tiktoken.encode(text, [], [])])});
  console.log('[\n' + cases.map(one => JSON.stringify(one)).join(',\n') + '\n]');
}
record();
