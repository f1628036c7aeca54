package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/verbena-rdma/verbena/diag/source"
)

// What the other end may take beyond the interval: until it begins to answer, and
// until it has answered.
const (
	patience = 30 * time.Second
	whole    = 3 * time.Minute
)

// Address is host:port of a peer that is given as HOST or HOST:PORT, IPv6 addresses
// with or without brackets.
func Address(peer string) (string, error) {
	host, port := peer, strconv.Itoa(Port)
	if h, p, err := net.SplitHostPort(peer); err == nil {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return "", fmt.Errorf("%.100q: the port must be 1 to 65535", peer)
		}
		host, port = h, p
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if host == "" || strings.ContainsAny(host, "/ \t\n\\?#@[]") {
		return "", fmt.Errorf("%.100q is no host", peer)
	}
	return net.JoinHostPort(host, port), nil
}

// Fetch asks a peer (see Address) for a recording of two instants with the interval
// between them, 0 to MaxInterval, or of one if it is 0. The answer is bounded in time
// and bytes. The error names the peer. The caller closes the recording.
func Fetch(ctx context.Context, peer string, interval time.Duration) (*source.Recording, error) {
	address, err := Address(peer)
	if err != nil {
		return nil, err
	}
	if interval < 0 || interval > MaxInterval {
		return nil, fmt.Errorf("%s: an interval of %v, must be 0 to %v", address, interval, MaxInterval)
	}
	ctx, cancel := context.WithTimeout(ctx, interval+whole)
	defer cancel()
	u := url.URL{Scheme: "http", Host: address, Path: path, RawQuery: url.Values{"interval": {interval.String()}}.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	c := http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 16 << 10,
			DialContext: (&net.Dialer{Timeout: patience}).DialContext, ResponseHeaderTimeout: interval + patience,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; there must be: verbena snapshot --listen ADDRESS:%d", address, cause(err), Port)
	}
	defer resp.Body.Close()
	switch t := resp.Header.Get("Content-Type"); {
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: answers %d: %s", address, resp.StatusCode, firstLine(resp.Body))
	case t != contentType:
		return nil, fmt.Errorf("%s: answers with %.60q, not with a recording", address, t)
	}
	rec, err := source.ParseTar("of "+address, resp.Body)
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("%s: %w before the recording was whole", address, ctx.Err())
	}
	return rec, err
}

// cause leaves out what an error of net/http says about the request.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return errors.New("no answer in time")
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return err
}

// firstLine is what a refusal says, fit for a terminal.
func firstLine(r io.Reader) string {
	b, _ := io.ReadAll(io.LimitReader(r, 200)) // what came is shown
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return strconv.Quote(string(line))
}
