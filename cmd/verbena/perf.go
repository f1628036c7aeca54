package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/perf"
	"github.com/verbena-rdma/verbena/perf/handshake"
	"github.com/verbena-rdma/verbena/perf/report"
	"github.com/verbena-rdma/verbena/transport/dcqcn"
	"github.com/verbena-rdma/verbena/verbs"
	"github.com/verbena-rdma/verbena/verbs/faultplan"
)

func (a app) perfCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "perf TEST",
		Short: "Measure bandwidth and latency, against perftest's programs or ourselves",
		Long: "Measures bandwidth and latency of RDMA operations. The peer is the same test of this program, or\n" +
			"the ib_write_bw, ib_read_lat … of perftest, as client or as server. Without a host it is the server.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("name a test: write-bw, read-bw, send-bw, atomic-bw, write-lat, read-lat, send-lat or atomic-lat")
		},
	}
	for _, v := range []handshake.Verb{handshake.Write, handshake.Read, handshake.Send, handshake.Atomic} {
		cmd.AddCommand(a.testCommand(v, false, v.String()+"-bw"), a.testCommand(v, true, v.String()+"-lat"))
	}
	return cmd
}

// testFlags is what the command line says beyond perf.Config.
type testFlags struct {
	cfg                              perf.Config
	conn, size, atomic, output, file string
	timeoutExp, seconds, margin, gap int
	sl, tclass, tos                  int
	fault                            string
	maxLat                           float64
	json, outJSON, version, queues   bool
	dcqcn, lineRate                  string
	knobs                            []string
}

// testCommand makes the command of one test under the name use.
func (a app) testCommand(v handshake.Verb, latency bool, use string) *cobra.Command {
	t := &testFlags{cfg: perf.Defaults(v, latency)}
	what := "bandwidth"
	if latency {
		what = "latency"
	}
	cmd := &cobra.Command{
		Use:   use + " [host]",
		Short: fmt.Sprintf("Measure the %s of %s: without a host be the server", what, strings.ToUpper(v.String())),
		Long: fmt.Sprintf("Measures the %s of %s. Without a host it is the server: it listens on all addresses and, without -d,\n"+
			"uses the device on the address that the client connects to. The client, without -d, uses the device that\n"+
			"routes to the server. The peer may be perftest's ib_%s; both ends need the same options.\n\n"+
			"Where both ends are ours they compare options before, and data after the test.",
			what, strings.ToUpper(v.String()), t.cfg.Name()),
		Args: oneHost,
	}
	f := cmd.Flags()
	f.SortFlags = false
	t.flags(f)
	refused := refuse(f)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if t.version {
			fmt.Fprintf(a.out, "Version: %s (verbena %s)\n", handshake.ProtocolVersion, buildVersion())
			return nil
		}
		var o *perf.Outcome
		err := refused()
		if err == nil {
			err = t.complete(f, args)
		}
		if err == nil {
			o, err = t.run(cmd, a)
		}
		if t.json {
			_, werr := a.out.Write(t.document(f, o, err))
			err = errors.Join(err, werr)
		}
		if errors.Is(err, perf.ErrUsage) {
			return fmt.Errorf("%w (see --help)", err)
		}
		return err
	}
	return cmd
}

// flags defines perftest's options, with perftest's names.
func (t *testFlags) flags(f *pflag.FlagSet) {
	c := &t.cfg
	f.BoolVarP(&c.All, "all", "a", false, "sizes from 2 to 2^23 bytes, on UD to the MTU")
	f.StringVarP(&t.atomic, "atomic_type", "A", "FETCH_AND_ADD", "ATOMIC: FETCH_AND_ADD or CMP_AND_SWAP")
	f.BoolVarP(&c.Both, "bidirectional", "b", false, "both ends send")
	f.StringVarP(&t.conn, "connection", "c", "RC", "transport: RC, UC (WRITE, SEND) or UD (SEND)")
	f.StringVarP(&c.Device, "ib-dev", "d", "", "device: vrb_<interface> or an address, with packet: before it on AF_PACKET; default: the one that routes to the peer")
	f.IntVarP(&t.seconds, "duration", "D", 0, "measure for so many seconds instead of -n messages")
	f.BoolVarP(&c.Events, "events", "e", false, "sleep on completion events instead of polling (not WRITE)")
	f.IntVarP(&t.margin, "margin", "f", -1, "seconds of -D that do not count at either end; default: a quarter")
	f.BoolP("CPU-freq", "F", false, "accepted: no clock frequency matters here")
	f.BoolVarP(&c.Histogram, "report-histogram", "H", false, "latency: print all samples, sorted")
	f.IntVarP(&c.IBPort, "ib-port", "i", c.IBPort, "port of the device; there is only 1")
	f.IntVarP(&c.Inline, "inline_size", "I", -1, "largest message that goes inline, bytes; default 0, in latency tests perftest's")
	f.IntVarP(&c.PostList, "post_list", "l", c.PostList, "post in lists of so many")
	f.IntVarP(&c.MTU, "mtu", "m", 0, "path MTU: 256, 512, 1024, 2048 or 4096; default: the port's; the smaller of both ends counts")
	f.Uint64VarP(&c.Iters, "iters", "n", c.Iters, "messages, or round trips, a size")
	f.BoolVarP(&c.NoPeak, "noPeak", "N", false, "do not measure the peak")
	f.IntVarP(&c.OutReads, "outs", "o", 0, "READ, ATOMIC: outstanding at a time; default: the device's most")
	f.IntVarP(&c.Port, "port", "p", c.Port, "TCP port of the handshake")
	f.IntVarP(&c.QPs, "qp", "q", c.QPs, "queue pairs")
	f.IntVarP(&c.CQMod, "cq-mod", "Q", 0, "ask for a completion every so many messages; default 100, above 8 KiB 1")
	f.IntVarP(&c.RxDepth, "rx-depth", "r", c.RxDepth, "SEND: receives posted")
	f.StringVarP(&t.size, "size", "s", strconv.FormatUint(c.Size, 10), "bytes of a message; K and M multiply by 2^10 and 2^20")
	f.IntVarP(&t.sl, "sl", "S", 0, "service level")
	f.IntVarP(&c.TxDepth, "tx-depth", "t", c.TxDepth, "send queue depth")
	f.IntVarP(&t.timeoutExp, "qp-timeout", "u", int(c.Timeout), "local ACK timeout: 4.096 us times 2 to this")
	f.BoolVar(&c.SRQ, "use-srq", false, "SEND: one receive queue of -r receives for all queue pairs")
	f.BoolVarP(&c.Unsorted, "report-unsorted", "U", false, "latency: print all samples as they came")
	f.BoolVarP(&c.CM, "rdma_cm", "R", false, "connect through the RDMA connection manager, on port -p of its port space")
	f.IntVar(&c.RetryCount, "retry_count", 0, "with -R: how often a packet is sent again; default 7")
	f.IntVarP(&t.tos, "tos", "T", 0, "with -R: type of service of the connections, one octet")
	f.BoolVarP(&t.version, "version", "V", false, "print the version")
	f.Float64VarP(&c.LimitBW, "limit_bw", "w", 0, "exit with 1 when the average bandwidth is lower, in the unit of the table")
	f.IntVarP(&c.Vector, "vector", "X", -1, "with -e: completion vector of the events, from 0; a device has one for each of its --shards")
	f.IntVarP(&c.GIDIndex, "gid-index", "x", -1, "row of the GID table; -1: chosen by the peer's address")
	f.Float64VarP(&c.LimitRate, "limit_msgrate", "y", 0, "exit with 1 when the message rate is lower, in million a second")
	f.StringVar(&t.fault, "fault", "", "follow this fault plan (see docs/faults.md) and print what was injected")
	f.BoolVar(&c.IPv6, "ipv6", false, "without -x, choose an IPv6 GID")
	f.IntVar(&t.gap, "latency_gap", 0, "latency: microseconds between messages")
	f.BoolVar(&t.outJSON, "out_json", false, "write perftest's report file, as JSON")
	f.StringVar(&t.file, "out_json_file", "perftest_out.json", "name of that file")
	f.StringVar(&t.output, "output", "", "print one number only: bandwidth, message_rate or latency")
	f.BoolVar(&c.BothParts, "report-both", false, "with -b, print both directions too")
	f.BoolVar(&c.Gbits, "report_gbits", false, "report gigabits, not mebibytes, a second")
	f.StringVar(&c.Source, "source_ip", "", "address of this end's TCP connection")
	f.IntVar(&t.tclass, "tclass", 0, "traffic class: DSCP and ECN, one octet")
	for _, n := range []string{"use_old_post_send", "disable_pcie_relaxed", "use_hugepages", "perform_warm_up"} {
		f.Bool(n, false, "accepted without effect")
		_ = f.MarkHidden(n)
	}
	f.IntVar(&c.Shards, "shards", 1, "engines of the device, with a socket each; queue pairs are spread over them")
	f.BoolVar(&t.queues, "queues", false, "print the queues of the device after the test")
	f.BoolVar(&t.json, "json", false, "print one JSON document instead of tables")
	f.StringVar(&t.dcqcn, "dcqcn", "", "congestion control of this end: paper, mlx5 or hpcc; default: off")
	f.StringArrayVar(&t.knobs, "dcqcn-set", nil, "with --dcqcn: one of its knobs, name=value; may be given again")
	f.StringVar(&t.lineRate, "line-rate", "", "with --dcqcn: rate of a queue pair that nobody slows, such as 10Gbps; default: the interface's")
	f.Float64Var(&c.MinGbps, "min-bw", 0, "exit with 1 when the average bandwidth is below so many Gb/s")
	f.Float64Var(&t.maxLat, "max-lat", 0, "exit with 1 when the average latency is above so many microseconds")
	f.BoolVar(&c.Plot, "histogram", false, "latency: plot the distribution")
	f.BoolVar(&c.NoVerify, "no-verify", false, "do not compare the data where both ends are ours")
}

// refused options of perftest: known, and not here.
var refusedOptions = []struct {
	long, short string
	arg         bool
	why         string
}{
	{"comm_rdma_cm", "z", false, "the handshake goes through the RDMA connection manager with -R, with the queue pairs"},
	{"dualport", "O", false, "our devices have one port"},
	{"mcg", "g", false, "multicast: not yet"},
	{"MGID", "M", true, "multicast: not yet"},
	{"hop_limit", "L", true, "belongs to raw Ethernet tests in perftest"},
	{"report-counters", "W", true, "not yet"},
	{"report-cycles", "C", false, "latency is reported in microseconds only"},
	{"run_infinitely", "", false, "not yet; use -D"},
	{"reversed", "", false, "start client and server the other way round"},
	{"report-per-port", "", false, "our devices have one port"},
	{"recv_post_list", "", true, "receives are posted in lists already"},
	{"inline_recv", "", true, "not a notion of our devices"},
	{"dlid", "", true, "RoCE has no LIDs"},
	{"force-link", "", true, "our devices are Ethernet"},
	{"mmap", "", true, "not supported"},
	{"mmap-offset", "", true, "not supported"},
	{"mr_per_qp", "", false, "not supported"},
	{"odp", "", false, "memory is always paged on demand here: leave it out"},
	{"cpu_util", "", false, "use --json, which has cpu_seconds"},
	{"pkey_index", "", true, "there is one partition key"},
	{"dont_xchg_versions", "", false, "not supported"},
	{"wait_destroy", "", true, "not supported"},
	{"rate_limit", "", true, "not yet"},
	{"rate_limit_type", "", true, "not yet"},
	{"rate_units", "", true, "not yet"},
	{"burst_size", "", true, "not yet"},
	{"typical_pkt_size", "", true, "not yet"},
}

// refuse defines perftest's options that are not here, hidden, and returns a
// function that names the first one that was given.
func refuse(f *pflag.FlagSet) func() error {
	for _, r := range refusedOptions {
		if r.arg {
			f.StringP(r.long, r.short, "", r.why)
		} else {
			f.BoolP(r.long, r.short, false, r.why)
		}
		_ = f.MarkHidden(r.long)
	}
	return func() error {
		for _, r := range refusedOptions {
			if f.Changed(r.long) {
				name := "--" + r.long
				if r.short != "" {
					name = "-" + r.short
				}
				return fmt.Errorf("%s: %s", name, r.why)
			}
		}
		return nil
	}
}

// complete takes over what flags say in words.
func (t *testFlags) complete(f *pflag.FlagSet, args []string) error {
	c := &t.cfg
	if len(args) == 1 {
		c.Peer = args[0]
	}
	size, err := parseSize(t.size)
	if err != nil {
		return err
	}
	c.Size, c.SizeSet = size, f.Changed("size")
	switch strings.ToUpper(t.conn) {
	case "RC":
		c.Conn = ib.RC
	case "UC":
		c.Conn = ib.UC
	case "UD":
		c.Conn = ib.UD
	case "XRC", "DC", "SRD":
		return fmt.Errorf("-c %s: not a transport of RoCEv2 adapters in general: RC, UC or UD", t.conn)
	default:
		return fmt.Errorf("-c %s: must be RC, UC or UD", t.conn)
	}
	switch t.atomic {
	case "FETCH_AND_ADD":
	case "CMP_AND_SWAP":
		c.CompareSwap = true
	default:
		return fmt.Errorf("-A %s: must be FETCH_AND_ADD or CMP_AND_SWAP", t.atomic)
	}
	if f.Changed("atomic_type") && c.Verb != handshake.Atomic {
		return errors.New("-A: belongs to atomic-bw and atomic-lat")
	}
	for _, r := range []struct {
		name  string
		v     int
		most  int
		least int
	}{
		{"-D", t.seconds, 1 << 20, 0},
		{"-f", t.margin, 1 << 20, -1},
		{"--latency_gap", t.gap, 1 << 30, 0},
		{"-u", t.timeoutExp, 31, 0},
		{"-S", t.sl, 7, 0},
		{"--tclass", t.tclass, 255, 0},
		{"-T", t.tos, 255, 0},
	} {
		if r.v < r.least || r.v > r.most {
			return fmt.Errorf("%s %d: must be between %d and %d", r.name, r.v, max(r.least, 0), r.most)
		}
	}
	if f.Changed("duration") && t.seconds == 0 {
		return errors.New("-D 0: at least 1 second")
	}
	if f.Changed("rx-depth") && c.Verb != handshake.Send {
		return errors.New("-r: belongs to SEND tests")
	}
	if f.Changed("shards") && c.Shards == 0 {
		return fmt.Errorf("--shards 0: must be between 1 and %d", verbs.MaxShards)
	}
	if f.Changed("vector") && c.Vector < 0 {
		return fmt.Errorf("-X %d: must be between 0 and %d", c.Vector, max(c.Shards, 1)-1)
	}
	if f.Changed("tx-depth") && c.Latency {
		return errors.New("-t: belongs to bandwidth tests")
	}
	if f.Changed("cq-mod") && c.CQMod == 0 {
		return errors.New("-Q 0: must be between 1 and 1024")
	}
	c.Duration = time.Duration(t.seconds) * time.Second
	if t.margin >= 0 {
		c.Margin = time.Duration(t.margin) * time.Second
	}
	c.Gap = time.Duration(t.gap) * time.Microsecond
	c.Timeout, c.SL, c.TClass, c.TOS = uint8(t.timeoutExp), uint8(t.sl), uint8(t.tclass), uint8(t.tos)
	c.MaxLat = time.Duration(t.maxLat * 1e3)
	for _, r := range []struct {
		name string
		v    float64
	}{{"-w", c.LimitBW}, {"-y", c.LimitRate}, {"--min-bw", c.MinGbps}, {"--max-lat", t.maxLat}} {
		if r.v < 0 || r.v != r.v {
			return fmt.Errorf("%s %g: must not be negative", r.name, r.v)
		}
	}
	if err := t.congestion(); err != nil {
		return err
	}
	return t.checkOutput()
}

// congestion takes over what flags say of DCQCN.
func (t *testFlags) congestion() error {
	d := &t.cfg.DCQCN
	d.Preset = t.dcqcn
	if t.dcqcn == "" && (len(t.knobs) > 0 || t.lineRate != "") {
		return errors.New("--dcqcn-set, --line-rate: belong to --dcqcn")
	}
	if t.lineRate != "" {
		rate, err := dcqcn.ParseRate(t.lineRate)
		if err != nil {
			return fmt.Errorf("--line-rate: %w", err)
		}
		d.LineRate = rate
	}
	for _, k := range t.knobs {
		name, value, ok := strings.Cut(k, "=")
		if !ok {
			return fmt.Errorf("--dcqcn-set %s: must be name=value", k)
		}
		if d.Knobs == nil {
			d.Knobs = map[string]string{}
		}
		d.Knobs[name] = value
	}
	if _, err := d.Params(); err != nil {
		return fmt.Errorf("--dcqcn: %w", err)
	}
	return nil
}

func (t *testFlags) checkOutput() error {
	ok := map[string]bool{"": true, "bandwidth": !t.cfg.Latency, "message_rate": !t.cfg.Latency, "latency": t.cfg.Latency}
	if !ok[t.output] {
		if t.cfg.Latency {
			return fmt.Errorf("--output %s: a latency test can print latency", t.output)
		}
		return fmt.Errorf("--output %s: a bandwidth test can print bandwidth or message_rate", t.output)
	}
	if t.json && t.output != "" {
		return errors.New("--output: does not go with --json")
	}
	return nil
}

// parseSize reads perftest's sizes.
func parseSize(s string) (uint64, error) {
	digits, factor := s, uint64(1)
	switch {
	case strings.HasSuffix(s, "K"):
		digits, factor = s[:len(s)-1], 1<<10
	case strings.HasSuffix(s, "M"):
		digits, factor = s[:len(s)-1], 1<<20
	}
	v, err := strconv.ParseUint(digits, 0, 32)
	if err != nil {
		return 0, fmt.Errorf("-s %s: not a size in bytes", s)
	}
	return v * factor, nil
}

func (t *testFlags) run(cmd *cobra.Command, a app) (*perf.Outcome, error) {
	c := t.cfg
	c.Out, c.Notes = a.out, a.err
	if t.fault != "" {
		plan, err := faultplan.Load(t.fault)
		if err != nil {
			return nil, fmt.Errorf("--fault: %w", err)
		}
		c.Open = func(v verbs.Config) (*verbs.Device, error) {
			v.Faults, v.FaultReport = plan, a.err
			return verbs.Open(v)
		}
	}
	if t.json || t.output != "" {
		c.Out = io.Discard
	}
	var file *lateFile
	if t.outJSON {
		var err error
		if file, err = openLate(t.file); err != nil {
			return nil, fmt.Errorf("--out_json_file: %w", err)
		}
	}
	o, err := perf.Run(cmd.Context(), c)
	switch {
	case file == nil:
	case len(o.Bandwidth) > 0 || len(o.Latency) > 0:
		err = errors.Join(err, file.write(t.reportFile(o)))
	default:
		file.drop()
	}
	for _, r := range o.Bandwidth {
		switch {
		case t.output == "message_rate":
			fmt.Fprintf(a.out, "%f\n", r.MsgPerSec/1e6)
		case t.output == "bandwidth" && c.Gbits:
			fmt.Fprintf(a.out, "%f\n", report.Gbps(r.BytesPerSec))
		case t.output == "bandwidth":
			fmt.Fprintf(a.out, "%f\n", report.MiBps(r.BytesPerSec))
		}
	}
	for _, r := range o.Latency {
		if t.output == "latency" {
			fmt.Fprintf(a.out, "%f\n", report.Usec(r.Average))
		}
	}
	if t.queues {
		_, werr := c.Out.Write(report.AppendQueues(nil, o.Queues))
		err = errors.Join(err, werr)
	}
	return o, err
}

// reportFile returns the document of --out_json.
func (t *testFlags) reportFile(o *perf.Outcome) []byte {
	var results []map[string]any
	for _, r := range o.Bandwidth {
		results = append(results, r.FileResult(t.cfg.Gbits))
	}
	for _, r := range o.Latency {
		results = append(results, r.FileResult(t.cfg.Duration > 0))
	}
	f := report.FileJSON{Info: o.Header.Info(), Results: results}
	if len(results) == 1 {
		f.Results = results[0]
	}
	return f.Append(nil)
}

// document returns the document of --json.
func (t *testFlags) document(f *pflag.FlagSet, o *perf.Outcome, err error) []byte {
	d := report.Document{Program: t.cfg.Name(), Version: buildVersion(), Options: map[string]any{}}
	f.Visit(func(x *pflag.Flag) {
		if x.Name != "json" {
			d.Options[x.Name] = x.Value.String()
		}
	})
	if t.cfg.Peer != "" {
		d.Options["host"] = t.cfg.Peer
	}
	if err != nil {
		d.Error = oneLine(err.Error())
	}
	if o == nil {
		return d.Append(nil)
	}
	d.Device, d.MTU, d.Verified, d.CPUSeconds = o.Device, o.MTU.Bytes(), o.Verified, o.CPU.Seconds()
	if !o.Local.IsZero() {
		d.Local = report.GIDText(o.Local)
	}
	if !o.Remote.IsZero() {
		d.Remote = report.GIDText(o.Remote)
	}
	for _, c := range o.Congestion {
		d.DCQCN = append(d.DCQCN, report.CongestionJSON{
			QPN: uint32(c.QPN), Phase: c.Phase.String(), Rate: float64(c.Rc) / 1e6, Target: float64(c.Rt) / 1e6, Alpha: c.Alpha,
			CNPsHandled: c.CNPsHandled, Cuts: c.Cuts, Marked: c.Marked, CNPsSent: c.CNPsSent,
		})
	}
	for _, r := range o.Bandwidth {
		d.Results = append(d.Results, r.JSON())
	}
	for _, r := range o.Latency {
		d.Results = append(d.Results, r.JSON(t.cfg.Duration > 0))
	}
	return d.Append(nil)
}
