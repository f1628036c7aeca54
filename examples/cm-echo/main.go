// Cm-echo is a client and a server that find each other by IP address and port,
// as RDMA programs do: the connection manager connects their queue pairs. The
// server sends back what it gets.
//
//	go run ./examples/cm-echo                           both ends, at 127.0.0.1 and 127.0.0.2
//	go run ./examples/cm-echo -listen 192.0.2.1         the server, at an address of this host
//	go run ./examples/cm-echo -connect 192.0.2.1:7471   the client, from the address that routes there
//
// The peer may be anything that speaks RDMA CM: another host with this program,
// a C program over rdma_cm.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

func main() {
	listen := flag.String("listen", "", "address to serve at")
	connect := flag.String("connect", "", "host:port to connect to")
	port := flag.Uint("port", 7471, "port to serve, of RDMA CM's port space")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case *listen != "":
		var s *server
		if s, err = serve(*listen, uint16(*port), os.Stdout); err == nil {
			err = s.run(ctx)
			s.close()
		}
	case *connect != "":
		err = talk(ctx, *connect, "", flag.Args(), os.Stdout)
	default:
		err = both(ctx, "127.0.0.1", "127.0.0.2", uint16(*port), os.Stdout)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "cm-echo:", err)
		os.Exit(1)
	}
}

// both runs a server and a client in one process.
func both(ctx context.Context, serverAddr, clientAddr string, port uint16, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := serve(serverAddr, port, out)
	if err != nil {
		return err
	}
	defer s.close()
	done := make(chan error, 1)
	go func() { done <- s.run(ctx) }()
	err = talk(ctx, fmt.Sprintf("%s:%d", serverAddr, s.listener.Port()), clientAddr, strings.Fields("hello world"), out)
	cancel()
	<-done // its error is that of the context
	return err
}
