// An agent as many are: a worker by child_process.fork, and a step that is a shell line.
const { fork, spawnSync } = require("child_process");

if (process.argv[2] === "worker") {
  process.on("message", () => process.send("alive"));
} else {
  const worker = fork(__filename, ["worker"]);
  worker.on("exit", (code, signal) => {
    console.log("worker", code, signal);
    process.exit();
  });
  worker.once("message", () => {
    const env = { ...process.env, AGENT: process.pid, WORKER: worker.pid };
    const step = spawnSync("bash", ["-c", process.argv[2]], { env, stdio: "inherit" });
    console.log("step", step.status);
    worker.once("message", (said) => {
      console.log("worker", said);
      worker.removeAllListeners("exit");
      worker.kill();
    });
    worker.send("are you there");
  });
  worker.send("are you there");
}
