// Simulates a compiler: takes a while, and writes an output that depends on the package's source.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";

const source = readFileSync("source.txt");
const { name, outputBytes } = JSON.parse(readFileSync("package.json", "utf8"));
await setTimeout(1500);

const pieces = [];
let piece = createHash("sha512").update(source).digest();
for (let size = 0; size < outputBytes; size += piece.length) {
  pieces.push(piece);
  piece = createHash("sha512").update(piece).digest();
}
mkdirSync("dist", { recursive: true });
writeFileSync("dist/output.bin", Buffer.concat(pieces));
console.log(`${name}: built ${outputBytes} bytes`);
