// What the page shows: the JSON that forge wrote into it.

const data = JSON.parse(byId('data').textContent);

const noNumber = '~'.charCodeAt(0);
const digitOf = new Uint8Array(128);
[...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].forEach((letter, digit) => {
  digitOf[letter.charCodeAt(0)] = digit;
});

/** Whole numbers from base64 VLQ differences of the first or second order; null for "~". */
function decodeCounts(text, order) {
  const counts = [];
  let last = 0;
  let change = 0;
  let rest = 0;
  let scale = 1;
  for (let i = 0; i < text.length; ++i) {
    const code = text.charCodeAt(i);
    if (code === noNumber) {
      counts.push(null);
      continue;
    }
    const digit = digitOf[code];
    rest += (digit & 31) * scale;
    scale *= 32;
    if (digit & 32) continue;
    const value = rest % 2 ? -(rest - 1) / 2 : rest / 2;
    change = order === 2 ? change + value : value;
    last += change;
    counts.push(last);
    rest = 0;
    scale = 1;
  }
  return counts;
}

/** Counts of 10^-digits as numbers. */
function scaled(counts, digits) {
  const power = 10 ** Math.abs(digits);
  return counts.map((count) =>
    count === null ? null : digits < 0 ? count * power : count / power,
  );
}

function decodeCurve(curve) {
  return {
    tokens: decodeCounts(curve.tokens, 2),
    seconds: scaled(decodeCounts(curve.seconds, 2), curve.seconds_digits),
    loss: scaled(decodeCounts(curve.loss, 1), curve.loss_digits),
  };
}

const curves = new Map();

/** The points of a run, "train" or "eval", decoded when they are first asked for. */
function curveOf(run, kind) {
  const key = `${kind} ${run.index}`;
  if (!curves.has(key)) curves.set(key, decodeCurve(run[kind]));
  return curves.get(key);
}

data.runs.forEach((run, index) => {
  run.index = index;
});

/** The settings of a config by key, as most have them and as it changes them. */
function settingsOf(index) {
  const settings = { ...data.configs.common };
  for (const [key, value] of Object.entries(data.configs.changes[index])) {
    if (value === null) delete settings[key];
    else settings[key] = value;
  }
  return settings;
}

/** One setting of a config; undefined where it has none. */
function settingOf(index, key) {
  const own = data.configs.changes[index][key];
  return own === undefined ? data.configs.common[key] : (own ?? undefined);
}

/** What the settings of runs of one config differ in, as "lr 0.002": sweeps do. */
function variationTexts() {
  const texts = new Map();
  const configs = new Map();
  for (const run of data.runs)
    configs.set(run.config, (configs.get(run.config) ?? new Set()).add(run.settings));
  for (const indices of configs.values()) {
    const all = [...indices].map((index) => ({ index, settings: settingsOf(index) }));
    const keys = differingKeys(all).filter((key) => key !== 'profile');
    for (const { index, settings } of all) {
      texts.set(
        index,
        keys
          .slice(0, 3)
          .map((key) => `${key.split('.').pop()} ${settings[key] ?? '—'}`)
          .join(', '),
      );
    }
  }
  return texts;
}

/** Keys of which not all configs have the same value and that can change a figure. */
function differingKeys(configs) {
  const keys = new Set(configs.flatMap(({ settings }) => Object.keys(settings)));
  for (const key of data.configs.harmless) keys.delete(key);
  return [...keys]
    .sort()
    .filter((key) => configs.some(({ settings }) => settings[key] !== configs[0].settings[key]));
}

const severalProfiles = new Set(data.runs.map((run) => run.profile)).size > 1;
const variations = variationTexts();

/** What tells a run from others of its config: "seed 2 · lr 0.002". */
function variantLabel(run) {
  return [`seed ${run.seed}`, severalProfiles ? run.profile : '', variations.get(run.settings)]
    .filter(Boolean)
    .join(' · ');
}

function runLabel(run) {
  return `${run.config} · ${variantLabel(run)}`;
}

// Figures in words.

const groups = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

function withThousands(value) {
  return value === null ? '—' : groups.format(value);
}

function lossText(value) {
  if (value === null) return '—';
  return value !== 0 && Math.abs(value) < 0.01 ? value.toPrecision(3) : value.toFixed(4);
}

function axisNumber(value) {
  return value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential() : `${+value.toPrecision(4)}`;
}

function shortNumber(value) {
  for (const [size, letter] of [
    [1e12, 'T'],
    [1e9, 'B'],
    [1e6, 'M'],
    [1e3, 'k'],
  ]) {
    if (Math.abs(value) >= size) return `${+(value / size).toPrecision(4)}${letter}`;
  }
  return `${+value.toPrecision(4)}`;
}

function durationText(seconds) {
  if (seconds === null) return '—';
  if (seconds < 60) return `${+seconds.toPrecision(3)} s`;
  const whole = Math.round(seconds);
  const parts = [
    [Math.floor(whole / 3600), 'h'],
    [Math.floor(whole / 60) % 60, 'min'],
    [whole % 60, 's'],
  ];
  return parts
    .filter(([count]) => count > 0)
    .slice(0, 2)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ');
}

/** The binary unit in which tables write so many bytes. */
function memoryUnit(bytes) {
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let power = 0;
  while (power < 4 && bytes / 1024 ** power >= 1024) ++power;
  return { name: names[power], size: 1024 ** power };
}

function memoryText(bytes) {
  if (bytes === null) return '—';
  const { name, size } = memoryUnit(Math.abs(bytes));
  return `${(bytes / size).toFixed(size > 1 ? 2 : 0)} ${name}`;
}
