// The build script of every package in the sample monorepo. It writes to dist/:
//   bundle.bin    <sample.outputBytes> bytes that do not compress and depend only on the package's name, source and dependencies
//   index.js      the source under a banner
//   bin/run.js    an executable, current.js a symbolic link: a cache must keep modes and links
//   digest.txt    a digest that dependents add to their own output
//   build-id.txt  new in every build, to distinguish a restored output from a rebuilt one, and how long the build took
import { createCipheriv, createHash, randomUUID } from "node:crypto";
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync, writeSync } from "node:fs";

const CHUNK_BYTES = 4 * 1024 * 1024;

const manifest = JSON.parse(readFileSync("package.json", "utf8"));
const source = readFileSync("src/index.js");
const identity = createHash("sha256").update(manifest.name).update(source);
for (const dependency of Object.keys(manifest.dependencies ?? {}).sort()) {
  identity.update(readFileSync(`../../node_modules/${dependency}/dist/digest.txt`));
}
const digest = identity.digest();

rmSync("dist", { recursive: true, force: true });
mkdirSync("dist/bin", { recursive: true });

const keystream = createCipheriv("aes-256-ctr", digest, Buffer.alloc(16));
const zeros = Buffer.alloc(CHUNK_BYTES);
const bundle = openSync("dist/bundle.bin", "w");
for (let left = manifest.sample.outputBytes; left > 0; left -= CHUNK_BYTES) {
  writeSync(bundle, keystream.update(left < CHUNK_BYTES ? zeros.subarray(0, left) : zeros));
}
closeSync(bundle);

writeFileSync("dist/index.js", `// ${manifest.name} ${digest.toString("hex")}\n${source}`);
writeFileSync("dist/bin/run.js", `#!/usr/bin/env node\nimport "../index.js";\n`, { mode: 0o755 });
symlinkSync("index.js", "dist/current.js");
writeFileSync("dist/digest.txt", digest.toString("hex"));
writeFileSync("dist/build-id.txt", `${randomUUID()} ${Math.floor(performance.now())}`);
console.log(`${manifest.name}: ${manifest.sample.outputBytes} bytes`);
