// Go's clients and servers, each with what came of it; or, given a URL, what is there.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

var big = strings.Repeat("x", 3000000)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func get(client *http.Client, url string) string {
	answer, err := client.Get(url)
	check(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	check(err)
	return string(text)
}

func requests(network, at string) bool {
	listener, err := net.Listen(network, at)
	check(err)
	defer listener.Close()
	go http.Serve(listener, http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		io.WriteString(answer, big)
	}))
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	client := &http.Client{Timeout: 30 * time.Second}
	url := "http://localhost:" + port
	if network == "unix" {
		client.Transport = &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var dialer net.Dialer
				return dialer.DialContext(ctx, "unix", at)
			},
		}
		url = "http://unix"
	}
	var all sync.WaitGroup
	right := make([]bool, 20)
	for i := range right {
		all.Add(1)
		go func() {
			defer all.Done()
			right[i] = get(client, url) == big
		}()
	}
	all.Wait()
	for _, each := range right {
		if !each {
			return false
		}
	}
	return true
}

func refused() bool {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	listener.Close()
	_, err = net.Dial("tcp", listener.Addr().String())
	return errors.Is(err, syscall.ECONNREFUSED)
}

func datagrams() string {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	check(err)
	go func() {
		room := make([]byte, 100)
		for {
			n, from, err := server.ReadFrom(room)
			if err != nil {
				return
			}
			server.WriteTo([]byte(strings.ToUpper(string(room[:n]))), from)
		}
	}()
	defer server.Close()
	client, err := net.Dial("udp", server.LocalAddr().String())
	check(err)
	_, err = client.Write([]byte("connected"))
	check(err)
	room := make([]byte, 100)
	n, err := client.Read(room)
	check(err)
	other, err := net.ListenUDP("udp", nil)
	check(err)
	_, _, err = other.WriteMsgUDP([]byte("not"), nil, server.LocalAddr().(*net.UDPAddr))
	check(err)
	m, _, err := other.ReadFrom(room[n:])
	check(err)
	return string(room[:n+m])
}

func main() {
	if len(os.Args) > 1 {
		fmt.Print(get(http.DefaultClient, os.Args[1]))
		return
	}
	folder, err := os.MkdirTemp("", "go")
	check(err)
	defer os.RemoveAll(folder)
	fmt.Println("tcp", requests("tcp", "localhost:0"))
	fmt.Println("unix", requests("unix", filepath.Join(folder, "local")))
	fmt.Println("refused", refused())
	fmt.Println("datagrams", datagrams())
}
