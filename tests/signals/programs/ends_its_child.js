const child = require("child_process").spawn("sleep", ["1000"]);
child.on("exit", (code, signal) => {
    console.log(code, signal);
    process.on("SIGUSR2", () => { console.log("usr2"); process.exit(0); });
    setInterval(() => {}, 1000);
    process.kill(process.pid, "SIGUSR2");
});
console.log(child.kill());
