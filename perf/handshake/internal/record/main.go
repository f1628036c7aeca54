// Command record stands between the two ends of a measuring program's TCP
// conversation and writes what each of them said: the transcripts of
// perf/handshake/testdata were made with it.
//
//	record -listen 10.77.0.1:18515 -to 10.77.0.11:18515 -title 'ib_write_bw -n 5' > x.txt
//
// It serves one connection. Each line of the output is one chunk as it was
// read: C or S for who said it, and the bytes, quoted.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:18515", "address that the client connects to")
	to := flag.String("to", "", "address of the server")
	title := flag.String("title", "", "first line of the transcript")
	flag.Parse()
	if err := record(*listen, *to, *title); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func record(listen, to, title string) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	client, err := l.Accept()
	if err != nil {
		return err
	}
	l.Close()
	defer client.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return err
	}
	defer server.Close()
	fmt.Println("#", title)
	var mu sync.Mutex
	copyChunks := func(who string, dst, src net.Conn) error {
		b := make([]byte, 64<<10)
		for {
			n, err := src.Read(b)
			if n > 0 {
				mu.Lock()
				fmt.Println(who, quote(b[:n]))
				mu.Unlock()
				if _, err := dst.Write(b[:n]); err != nil {
					return err
				}
			}
			if err != nil {
				_ = dst.(*net.TCPConn).CloseWrite()
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
		}
	}
	done := make(chan struct{})
	go func() {
		_ = copyChunks("S", client, server)
		close(done)
	}()
	_ = copyChunks("C", server, client)
	<-done
	return nil
}

// quote writes text as it is and every other byte as \xNN.
func quote(b []byte) string {
	var s strings.Builder
	s.WriteByte('"')
	for _, c := range b {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			fmt.Fprintf(&s, `\x%02x`, c)
		} else {
			s.WriteByte(c)
		}
	}
	s.WriteByte('"')
	return s.String()
}
