// Go's clients and servers, each with what came of it; or, given a URL, what is there.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
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

func everything(network, at, request string) string {
	connection, err := net.Dial(network, at)
	check(err)
	defer connection.Close()
	check(connection.SetDeadline(time.Now().Add(30 * time.Second)))
	_, err = io.WriteString(connection, request)
	check(err)
	text, err := io.ReadAll(connection)
	check(err)
	return string(text)
}

func get(url string) string {
	host, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	_, body, _ := strings.Cut(everything("tcp", host, "GET /"+path+" HTTP/1.0\r\n\r\n"), "\r\n\r\n")
	return body
}

func serve(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer connection.Close()
			io.WriteString(connection, big)
		}()
	}
}

func requests(network, at string) bool {
	listener, err := net.Listen(network, at)
	check(err)
	defer listener.Close()
	go serve(listener)
	if network == "tcp" {
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		at = "localhost:" + port
	}
	var all sync.WaitGroup
	right := make([]bool, 20)
	for i := range right {
		all.Add(1)
		go func() {
			defer all.Done()
			right[i] = everything(network, at, "") == big
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
		fmt.Print(get(os.Args[1]))
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
