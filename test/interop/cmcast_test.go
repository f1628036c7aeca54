//go:build linux

package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/test/interop/guest"
	"github.com/verbena-rdma/verbena/test/interop/judge"
)

// TestGroupsOfTheConnectionManager holds the multicast groups of package rdmacm
// against mckey in the guest, which joins by Linux' rdma_cm: each sends to the
// other. Our end runs without any privilege. IPv4 alone: Linux' rdma_cm joins no
// IPv6 groups over RoCEv2 (ENOTSUPP).
func TestGroupsOfTheConnectionManager(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	program, err := cmPeerProgram()
	if err != nil {
		t.Fatal(err)
	}
	b := &cmBench{net: network(t), program: program}
	b.mckey(t, "239.77.2.1")
	complaints(t, b.net.Guest(1))
}

// mckey is both directions in one group.
func (b *cmBench) mckey(t *testing.T, group string) {
	theirs := fmt.Sprintf("mckey -m %s -b %v -C 10 -S 100", group, b.net.Guest(1).IP4())
	t.Run("they send", func(t *testing.T) { b.mckeySends(t, group, theirs+" -s") })
	t.Run("we send", func(t *testing.T) { b.mckeyHears(t, group, theirs) })
}

// mckeySends: ours is a member, and ends when it has heard all.
func (b *cmBench) mckeySends(t *testing.T, group, theirs string) {
	ctx := within(t, patience)
	pr, pw := newLines()
	cmd := b.command(ctx, "mckey", "-dev", guest.Bridge, "-group", group)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", pw, pw
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		pw.end()
		done <- err
	}()
	if err := pr.await(ctx, "rdmacm.Joined"); err != nil {
		t.Fatalf("ours does not join: %v\n%s", err, pw.text())
	}
	for heard, try := false, 1; !heard; try++ {
		r, err := b.net.Guest(1).Run(ctx, theirs)
		if err == nil {
			err = r.Err()
		}
		if err != nil {
			t.Errorf("mckey: %v\n%s%s", err, r.Stdout, r.Stderr)
		}
		if err != nil || try == dataTries {
			_ = cmd.Process.Kill() // it waits for what will not come
		}
		// A datagram may be lost: then theirs sends once more.
		select {
		case err = <-done:
			heard = true
			if err != nil {
				t.Errorf("ours: %v\n%s", err, pw.text())
			}
		case <-time.After(lossPatience):
		}
	}
}

// mckeyHears: theirs is a member, and ends when it has heard all; then ours is
// told to.
func (b *cmBench) mckeyHears(t *testing.T, group, theirs string) {
	ctx := within(t, patience)
	p, err := b.net.Guest(1).Background(ctx, theirs)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	cmd := b.command(ctx, "mckey", "-dev", guest.Bridge, "-group", group, "-send")
	_, out := newLines()
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", out, out
	more, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r, err := p.Wait(ctx)
	if err == nil {
		err = r.Err()
	}
	if err != nil || !strings.Contains(r.Stdout, "data transfers complete") {
		t.Errorf("mckey: %v\n%s%s", err, r.Stdout, r.Stderr)
	}
	_ = more.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("ours: %v\n%s", err, out.text())
	}
}
