// How series look: colour, dashes and marker together tell them apart, for every kind of sight.

// Okabe and Ito's colours without yellow, which is too faint on white; the last is the text's.
const hues = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', null];
const dashPatterns = [[], [7, 3], [2, 3], [9, 3, 2, 3], [14, 4]];
const markerShapes = ['circle', 'square', 'triangle', 'diamond', 'cross', 'wedge', 'star', 'plus'];

function styleOf(index) {
  return {
    hue: hues[index % hues.length],
    dash: dashPatterns[Math.floor(index / hues.length) % dashPatterns.length],
    marker: markerShapes[index % markerShapes.length],
  };
}

const configsByName = [...new Set(data.runs.map((run) => run.config))];

/** A config looks alike in every chart; `variant` tells rows of one config apart by their marker. */
function styleOfConfig(config, variant = 0) {
  const index = configsByName.indexOf(config);
  const { marker } = styleOf(index + variant);
  return { ...styleOf(index), marker };
}

const cssColours = new Map();

/** The colour of a variable of page.css, looked up once until other ones hold. */
function cssColour(name) {
  if (!cssColours.has(name))
    cssColours.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return cssColours.get(name);
}

function colourOf(style) {
  return style.hue ?? cssColour('--text');
}

/** Corners of the shapes within a radius of 1; a list of strokes for those that are only lines. */
const corners = {
  square: [
    [-0.85, -0.85],
    [0.85, -0.85],
    [0.85, 0.85],
    [-0.85, 0.85],
  ],
  triangle: [
    [0, -1.1],
    [1.05, 0.8],
    [-1.05, 0.8],
  ],
  wedge: [
    [0, 1.1],
    [1.05, -0.8],
    [-1.05, -0.8],
  ],
  diamond: [
    [0, -1.2],
    [1.2, 0],
    [0, 1.2],
    [-1.2, 0],
  ],
  cross: [
    [-1, -0.5],
    [-0.5, -1],
    [0, -0.5],
    [0.5, -1],
    [1, -0.5],
    [0.5, 0],
    [1, 0.5],
    [0.5, 1],
    [0, 0.5],
    [-0.5, 1],
    [-1, 0.5],
    [-0.5, 0],
  ],
  plus: [
    [-0.38, -1.1],
    [0.38, -1.1],
    [0.38, -0.38],
    [1.1, -0.38],
    [1.1, 0.38],
    [0.38, 0.38],
    [0.38, 1.1],
    [-0.38, 1.1],
    [-0.38, 0.38],
    [-1.1, 0.38],
    [-1.1, -0.38],
    [-0.38, -0.38],
  ],
  star: [
    [0, -1.3],
    [0.35, -0.45],
    [1.2, -0.4],
    [0.55, 0.15],
    [0.8, 1],
    [0, 0.5],
    [-0.8, 1],
    [-0.55, 0.15],
    [-1.2, -0.4],
    [-0.35, -0.45],
  ],
};

function markerPath(shape, x, y, radius) {
  const path = new Path2D();
  if (shape === 'circle') {
    path.arc(x, y, radius, 0, 2 * Math.PI);
    return path;
  }
  corners[shape].forEach(([dx, dy], i) => {
    path[i ? 'lineTo' : 'moveTo'](x + dx * radius, y + dy * radius);
  });
  path.closePath();
  return path;
}

/** The sample of a series in a list: its marker, with its line where it has one. */
function swatch(style, hasLine = true) {
  const stroke = style.hue ?? 'currentColor';
  const width = hasLine ? 34 : 14;
  const line = svgElement('line', {
    x1: 1,
    y1: 6,
    x2: width - 1,
    y2: 6,
    stroke,
    'stroke-width': 2,
    'stroke-dasharray': style.dash.join(' ') || null,
  });
  const mark =
    style.marker === 'circle'
      ? svgElement('circle', { cx: width / 2, cy: 6, r: 4, fill: stroke })
      : svgElement('polygon', {
          fill: stroke,
          points: corners[style.marker]
            .map(([x, y]) => `${width / 2 + 4 * x},${6 + 4 * y}`)
            .join(' '),
        });
  return svgElement(
    'svg',
    { class: 'swatch', viewBox: `0 0 ${width} 12`, width, height: 12, 'aria-hidden': 'true' },
    ...(hasLine ? [line] : []),
    mark,
  );
}
