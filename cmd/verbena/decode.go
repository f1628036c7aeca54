package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/diag/capture"
)

func (a app) decodeCommand() *cobra.Command {
	var quiet, wrongOnly bool
	cmd := &cobra.Command{
		Use:   "decode FILE.pcap[ng]",
		Short: "Print the RoCE packets of a capture, every ICRC verified",
		Long: "Prints one line for each RoCE packet of a capture (pcap or pcapng, anybody's; - is standard input), with the ICRC\n" +
			"verified, and totals. Frames that a kernel merged are cut into packets. The exit status is 1 when anything is wrong:\n" +
			"an ICRC, a malformed header, a frame that the capture cut, or a damaged file.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("want one capture file, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.decode(args[0], quiet, wrongOnly) },
	}
	f := cmd.Flags()
	f.BoolVarP(&quiet, "quiet", "q", false, "print the totals only")
	f.BoolVar(&wrongOnly, "wrong", false, "print only packets that something is wrong with, and the totals")
	return cmd
}

func (a app) decode(name string, quiet, wrongOnly bool) (err error) {
	in := a.in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	w := bufio.NewWriterSize(a.out, 1<<16)
	totals, err := decodeTo(w, in, quiet, wrongOnly)
	if flushErr := w.Flush(); flushErr != nil {
		return flushErr
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if totals.Packets == 0 {
		fmt.Fprintf(a.err, "verbena decode: %s holds no RoCE packet\n", name)
	}
	if totals.Wrong() > 0 {
		return &quietError{1}
	}
	return nil
}

// decodeTo writes the lines and, whatever happens to the file, the totals.
func decodeTo(w io.Writer, in io.Reader, quiet, wrongOnly bool) (capture.Totals, error) {
	var line []byte
	totals, err := capture.Decode(in, func(p *capture.Packet) error {
		if quiet || wrongOnly && p.Bad == "" {
			return nil
		}
		line = append(p.AppendLine(line[:0]), '\n')
		_, err := w.Write(line)
		return err
	})
	if err != nil && totals.Frames == 0 {
		return totals, err // no capture at all
	}
	return totals, errors.Join(err, totals.Print(w))
}
