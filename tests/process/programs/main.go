package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
)

func main() {
	got := make(chan os.Signal, 100)
	signal.Notify(got, syscall.SIGUSR1)
	var all sync.WaitGroup
	sums := make([]int, 8)
	for i := range sums {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			runtime.LockOSThread()
			for j := 0; j < 5; j++ {
				out, err := exec.Command("sh", "-c", "echo x").Output()
				if err == nil {
					sums[i] += len(out)
				}
			}
			for j := 0; j < 30000000; j++ {
				sums[i] ^= j & 1
			}
		}(i)
	}
	for i := 0; i < 20; i++ {
		runtime.GC()
	}
	all.Wait()
	fmt.Println(sums)
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	fmt.Println(<-got)
	err := exec.Command("sh", "-c", "exit 3").Run()
	fmt.Println(err)
	_, err = exec.LookPath("no-such-program")
	fmt.Println(err)
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- syscall.Exec("/bin/sh", []string{"sh", "-c", "echo replaced; exit 8"}, os.Environ())
	}()
	fmt.Println(<-done)
}
