"use strict";
// Building the page: text is always text, never markup.

const payload = JSON.parse(document.getElementById("payload").textContent);
const names = payload.names;
const SVG = "http://www.w3.org/2000/svg";

function byId(id) {
  return document.getElementById(id);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "on") {
      for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    } else if (value !== null && value !== undefined) {
      node.setAttribute(key, value);
    }
  }
  for (const child of children || []) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

function element(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function drawn(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function dense(entries, symmetric) {
  const matrix = names.map(() => new Float64Array(names.length));
  for (const [i, j, value] of entries) {
    matrix[i][j] = value;
    if (symmetric) matrix[j][i] = value;
  }
  return matrix;
}

const edge = dense(payload.edge);
const path = dense(payload.path);
const blanket = dense(payload.blanket, true);
const compelled = dense(payload.compelled);

function probability(value) {
  if (value > 0 && value < 0.001) return "< 0.001";
  if (value > 0.999 && value < 1) return "> 0.999";
  return value.toFixed(3);
}

function figure(value, digits) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  if (Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3) return value.toExponential(2);
  return String(Number(value.toPrecision(digits || 3)));
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function arrow(i, j) {
  return `${names[i]} → ${names[j]}`;
}
