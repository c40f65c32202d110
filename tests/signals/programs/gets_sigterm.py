import signal

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print("ready", flush=True)
info = signal.sigwaitinfo({signal.SIGTERM})
print("GOT SIGTERM from", info.si_pid, "of", info.si_uid, flush=True)
