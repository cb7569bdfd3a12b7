// What the console uses of its libraries. `make vendor-console` bundles it.
import htm from "htm";
import { h } from "preact";

export { render } from "preact";
export { useEffect, useId, useRef, useState } from "preact/hooks";
export const html = htm.bind(h);
