// Elements. Every text goes in as text: nothing here or elsewhere is ever parsed as HTML.

/** An element with attributes (`on…`: listeners) and children, which may be texts. */
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  setProperties(made, properties);
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

const svgSpace = 'http://www.w3.org/2000/svg';

function svgElement(tag, properties = {}, ...children) {
  const made = document.createElementNS(svgSpace, tag);
  setProperties(made, properties);
  made.append(...children);
  return made;
}

function setProperties(target, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) target.addEventListener(name.slice(2), value);
    else if (name === 'checked' || name === 'value' || name === 'indeterminate')
      target[name] = value;
    else target.setAttribute(name, value === true ? '' : value);
  }
}

const byId = (id) => document.getElementById(id);

/** Says a sentence to those who hear the page. */
function announce(text) {
  byId('announcer').textContent = text;
}

function button(label, onclick, properties = {}) {
  return element('button', { type: 'button', class: 'button', onclick, ...properties }, label);
}

/** A labelled choice; `options` are [value, label]. */
function choice(label, options, value, onchange) {
  const select = element(
    'select',
    {},
    options.map(([key, text]) => element('option', { value: key }, text)),
  );
  select.value = value;
  select.addEventListener('change', () => onchange(select.value));
  return element('label', { class: 'control' }, element('span', {}, label), select);
}

function checkbox(label, checked, onchange, properties = {}) {
  const input = element('input', { type: 'checkbox', checked, ...properties });
  input.addEventListener('change', () => onchange(input.checked));
  return element('label', { class: 'check' }, input, element('span', {}, label));
}

function list(items, properties = {}) {
  return element(
    'ul',
    properties,
    items.map((item) => element('li', {}, item)),
  );
}

function codeBlock(lines) {
  const text = lines.join('\n');
  const copy = button(
    'Copy',
    async () => {
      try {
        await navigator.clipboard.writeText(text);
        announce('Copied');
        copy.textContent = 'Copied';
      } catch {
        copy.textContent = 'Select and copy';
      }
      setTimeout(() => {
        copy.textContent = 'Copy';
      }, 1500);
    },
    { class: 'button copy' },
  );
  return element('div', { class: 'code' }, element('pre', { tabindex: 0 }, text), copy);
}
