/*
 * peer: a queue pair of Linux' rdma_rxe by remote control, for the interop tests. It runs in the guest and listens on
 * a TCP port; each connection has one queue pair and one memory region that allows everything. Commands and answers
 * are lines of words; an answer begins with "ok", or is "error" and the reason. All numbers are decimal, but GIDs are
 * 32 hexadecimal digits.
 *
 *	open TYPE BYTES GIDINDEX DEPTH           ok QPN PSN RKEY ADDRESS GID      TYPE is rc, uc or ud
 *	connect QPN PSN GID MTU TIMEOUT RETRY RNRRETRY MINRNR RDATOMIC   ok       the last six are codes; uc and ud skip some
 *	fill OFFSET LENGTH, then bytes           ok
 *	dump OFFSET LENGTH                       ok, then bytes
 *	recv ID OFFSET LENGTH COUNT              ok                               posts COUNT equal receives
 *	send ID OPCODE OFFSET LENGTH RADDR RKEY IMM COMPARE SWAPADD FLAGS QKEY COUNT   ok   COUNT equal requests
 *	raw ID OPCODE OFFSET LENGTH RADDR RKEY FLAGS TYPE LEVEL   ok         for what this libibverbs cannot post: SEND with
 *		invalidate (of RKEY), FLUSH (of TYPE and LEVEL), ATOMIC WRITE; written into rdma_rxe's queue by its kernel ABI
 *	window OFFSET LENGTH                     ok RKEY                          binds a window of type 2 that allows everything
 *	poll N MILLISECONDS                      wc ID STATUS OPCODE LENGTH IMM FLAGS, each; then ok K   IMM: or the key that was invalidated
 *	state                                    ok STATE                         as ibv_qp_state
 *
 * Memory is what ibverbs leaves it: nothing here checks what the tests do, and the test judges the answers.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/in.h>
#include <rdma/rdma_user_rxe.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static FILE *in, *out;

static struct {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct rxe_queue_buf *sq;
	enum ibv_qp_type type;
	char *buf;
	size_t len;
	int gid_index;
	uint32_t psn;
	uint32_t dest_qpn;
} q;

static void answer(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vfprintf(out, format, ap);
	va_end(ap);
	fputc('\n', out);
	fflush(out);
}

static void failed(const char *what, int err)
{
	answer("error %s: %s", what, strerror(err));
}

#define ACCESS_FLUSH (1 << 8) /* IB_UVERBS_ACCESS_FLUSH_GLOBAL, of Linux 6.2 */
#define WR_FLUSH 14	      /* IB_UVERBS_WR_FLUSH */
#define WR_ATOMIC_WRITE 15    /* IB_UVERBS_WR_ATOMIC_WRITE */

/*
 * find_sq returns the send queue of the process' one queue pair, which rdma_rxe shares with its library: of what is
 * mapped from the device it is the second in the order of offsets, behind the completion queue and before the receives.
 */
static struct rxe_queue_buf *find_sq(void)
{
	char line[PATH_MAX];
	unsigned long start, off, seen[2] = { ULONG_MAX, ULONG_MAX };
	void *at[2] = { NULL, NULL };
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof line, f)) {
		if (!strstr(line, "/uverbs") || sscanf(line, "%lx-%*x %*s %lx", &start, &off) != 2)
			continue;
		if (off < seen[0]) {
			seen[1] = seen[0];
			at[1] = at[0];
			seen[0] = off;
			at[0] = (void *)start;
		} else if (off < seen[1]) {
			seen[1] = off;
			at[1] = (void *)start;
		}
	}
	if (f)
		fclose(f);
	return at[1];
}

static void do_open(const char *args)
{
	char type[8];
	size_t bytes;
	int gid_index, depth;
	struct ibv_device **list;
	union ibv_gid gid;
	char hex[33];

	if (q.ctx || sscanf(args, "%7s %zu %d %d", type, &bytes, &gid_index, &depth) != 4) {
		failed("open", EINVAL);
		return;
	}
	q.type = strcmp(type, "rc") == 0 ? IBV_QPT_RC : strcmp(type, "uc") == 0 ? IBV_QPT_UC : IBV_QPT_UD;
	q.len = bytes;
	q.gid_index = gid_index;
	list = ibv_get_device_list(NULL);
	if (!list || !list[0] || !(q.ctx = ibv_open_device(list[0]))) {
		failed("open device", errno);
		return;
	}
	if (!(q.pd = ibv_alloc_pd(q.ctx))) {
		failed("PD", errno);
		return;
	}
	if (!(q.cq = ibv_create_cq(q.ctx, 2 * depth, NULL, NULL, 0))) {
		failed("CQ", errno);
		return;
	}
	if (posix_memalign((void **)&q.buf, 4096, bytes)) {
		failed("memory", ENOMEM);
		return;
	}
	memset(q.buf, 0, bytes);
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

	q.mr = ibv_reg_mr(q.pd, q.buf, bytes, access | IBV_ACCESS_MW_BIND | ACCESS_FLUSH);
	if (q.mr)
		access |= ACCESS_FLUSH;
	else /* a kernel that does not know it */
		q.mr = ibv_reg_mr(q.pd, q.buf, bytes, access | IBV_ACCESS_MW_BIND);
	if (!q.mr) {
		failed("MR", errno);
		return;
	}
	struct ibv_qp_init_attr_ex init = {
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = q.pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
		.send_cq = q.cq,
		.recv_cq = q.cq,
		.qp_type = q.type,
		.cap = { .max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	if (!(q.qp = ibv_create_qp_ex(q.ctx, &init))) {
		failed("QP", errno);
		return;
	}
	if (!(q.sq = find_sq())) {
		failed("find the send queue", ENOENT);
		return;
	}
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = 0x11111111,
		.qp_access_flags = access & ~IBV_ACCESS_LOCAL_WRITE,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	int err = ibv_modify_qp(q.qp, &attr, mask | (q.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	if (err) {
		failed("modify to INIT", err);
		return;
	}
	if (ibv_query_gid(q.ctx, 1, gid_index, &gid)) {
		failed("GID", errno);
		return;
	}
	for (int i = 0; i < 16; i++)
		sprintf(hex + 2 * i, "%02x", gid.raw[i]);
	srandom(time(NULL) ^ getpid());
	q.psn = random() & 0xffffff;
	answer("ok %u %u %u %" PRIu64 " %s", q.qp->qp_num, q.psn, q.mr->rkey, (uint64_t)(uintptr_t)q.buf, hex);
}

static void do_connect(const char *args)
{
	unsigned qpn, psn, mtu, timeout, retry, rnr, min_rnr, rd;
	char hex[33];
	union ibv_gid gid;
	int err, mask;

	if (!q.qp || sscanf(args, "%u %u %32s %u %u %u %u %u %u", &qpn, &psn, hex, &mtu, &timeout, &retry, &rnr, &min_rnr, &rd) != 9) {
		failed("connect", EINVAL);
		return;
	}
	for (int i = 0; i < 16; i++) {
		unsigned b;

		if (sscanf(hex + 2 * i, "%2x", &b) != 1) {
			failed("GID", EINVAL);
			return;
		}
		gid.raw[i] = b;
	}
	struct ibv_ah_attr ah = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = gid, .sgid_index = q.gid_index, .hop_limit = 64 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = qpn,
		.rq_psn = psn,
		.max_dest_rd_atomic = rd,
		.min_rnr_timer = min_rnr,
		.ah_attr = ah,
	};
	mask = IBV_QP_STATE;
	if (q.type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (q.type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if ((err = ibv_modify_qp(q.qp, &attr, mask))) {
		failed("modify to RTR", err);
		return;
	}
	memset(&attr, 0, sizeof attr);
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = q.psn;
	attr.timeout = timeout;
	attr.retry_cnt = retry;
	attr.rnr_retry = rnr;
	attr.max_rd_atomic = rd;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (q.type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	if ((err = ibv_modify_qp(q.qp, &attr, mask))) {
		failed("modify to RTS", err);
		return;
	}
	if (q.type == IBV_QPT_UD && !(q.ah = ibv_create_ah(q.pd, &ah))) {
		failed("AH", errno);
		return;
	}
	q.dest_qpn = qpn;
	answer("ok");
}

/* span reads OFFSET and LENGTH and returns whether they lie in the memory. */
static int span(const char *args, size_t *off, size_t *len)
{
	return q.buf && sscanf(args, "%zu %zu", off, len) == 2 && *off <= q.len && *len <= q.len - *off;
}

static void do_fill(const char *args)
{
	size_t off, len;

	if (!span(args, &off, &len) || fread(q.buf + off, 1, len, in) != len) {
		failed("fill", EINVAL);
		exit(1); /* what follows is not a command */
	}
	answer("ok");
}

static void do_dump(const char *args)
{
	size_t off, len;

	if (!span(args, &off, &len)) {
		failed("dump", EINVAL);
		return;
	}
	answer("ok");
	fwrite(q.buf + off, 1, len, out);
	fflush(out);
}

static void do_recv(const char *args)
{
	uint64_t id, off;
	uint32_t len;
	int count;
	struct ibv_recv_wr *bad;

	if (!q.qp || sscanf(args, "%" SCNu64 " %" SCNu64 " %u %d", &id, &off, &len, &count) != 4) {
		failed("recv", EINVAL);
		return;
	}
	struct ibv_sge sge = { .addr = (uintptr_t)q.buf + off, .length = len, .lkey = q.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	for (int i = 0; i < count; i++) {
		int err = ibv_post_recv(q.qp, &wr, &bad);

		if (err) {
			failed("post receive", err);
			return;
		}
	}
	answer("ok");
}

static void do_send(const char *args)
{
	uint64_t id, off, raddr, compare, swap_add;
	unsigned op, len, rkey, imm, flags, qkey;
	int count;
	struct ibv_send_wr *bad;

	if (!q.qp || sscanf(args, "%" SCNu64 " %u %" SCNu64 " %u %" SCNu64 " %u %u %" SCNu64 " %" SCNu64 " %u %u %d", &id, &op, &off,
			    &len, &raddr, &rkey, &imm, &compare, &swap_add, &flags, &qkey, &count) != 12) {
		failed("send", EINVAL);
		return;
	}
	struct ibv_sge sge = { .addr = (uintptr_t)q.buf + off, .length = len, .lkey = q.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = id,
		.sg_list = &sge,
		.num_sge = len ? 1 : 0,
		.opcode = op,
		.send_flags = flags,
		.imm_data = htonl(imm),
	};
	if (op == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = rkey;
	if (q.type == IBV_QPT_UD) {
		wr.wr.ud.ah = q.ah;
		wr.wr.ud.remote_qpn = q.dest_qpn;
		wr.wr.ud.remote_qkey = qkey;
	} else if (op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = raddr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = compare;
		wr.wr.atomic.swap = swap_add;
	} else if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = raddr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = swap_add;
	} else if (op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_WRITE_WITH_IMM || op == IBV_WR_RDMA_READ) {
		wr.wr.rdma.remote_addr = raddr;
		wr.wr.rdma.rkey = rkey;
	}
	for (int i = 0; i < count; i++) {
		int err = ibv_post_send(q.qp, &wr, &bad);

		if (err) {
			failed("post send", err);
			return;
		}
	}
	answer("ok");
}

static void do_raw(const char *args)
{
	uint64_t id, off, raddr;
	unsigned op, len, rkey, flags, type, level;
	struct ibv_qp_ex *qp = q.qp ? ibv_qp_to_qp_ex(q.qp) : NULL;

	if (!qp || sscanf(args, "%" SCNu64 " %u %" SCNu64 " %u %" SCNu64 " %u %u %u %u", &id, &op, &off, &len, &raddr, &rkey, &flags,
			  &type, &level) != 9) {
		failed("raw", EINVAL);
		return;
	}
	uint32_t i = q.sq->producer_index;
	struct rxe_send_wqe *w = (void *)(q.sq->data + ((size_t)(i & q.sq->index_mask) << q.sq->log2_elem_size));

	memset(w, 0, sizeof *w);
	w->wr.wr_id = id;
	w->wr.opcode = op;
	w->wr.send_flags = flags;
	w->iova = raddr;
	w->dma.length = w->dma.resid = len;
	switch (op) {
	case IBV_WR_SEND_WITH_INV:
		w->wr.ex.invalidate_rkey = rkey;
		w->dma.num_sge = 1;
		w->dma.sge[0] = (struct rxe_sge){ .addr = (uintptr_t)q.buf + off, .length = len, .lkey = q.mr->lkey };
		break;
	case WR_FLUSH: { /* the header of this libibverbs has no name for its part of the union */
		struct {
			uint64_t addr;
			uint32_t length, rkey;
			uint8_t type, level;
		} flush = { raddr, len, rkey, type, level };

		memcpy(&w->wr.wr, &flush, sizeof flush);
		break;
	}
	case WR_ATOMIC_WRITE:
		w->wr.wr.rdma.remote_addr = raddr;
		w->wr.wr.rdma.rkey = rkey;
		memcpy(w->dma.inline_data, q.buf + off, 8);
		break;
	default:
		failed("raw", EINVAL);
		return;
	}
	__atomic_store_n(&q.sq->producer_index, (i + 1) & q.sq->index_mask, __ATOMIC_RELEASE);
	ibv_wr_start(qp); /* an empty list rings the bell */
	int err = ibv_wr_complete(qp);

	if (err) {
		failed("ring", err);
		return;
	}
	answer("ok");
}

static void do_window(const char *args)
{
	size_t off, len;
	struct ibv_mw *mw;
	struct ibv_send_wr *bad;
	int err;

	if (!q.qp || !span(args, &off, &len)) {
		failed("window", EINVAL);
		return;
	}
	if (!(mw = ibv_alloc_mw(q.pd, IBV_MW_TYPE_2))) {
		failed("window", errno);
		return;
	}
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {
			.mw = mw,
			.rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = {
				.mr = q.mr,
				.addr = (uintptr_t)q.buf + off,
				.length = len,
				.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
			},
		},
	};
	if ((err = ibv_post_send(q.qp, &wr, &bad))) {
		failed("bind", err);
		return;
	}
	answer("ok %u", wr.bind_mw.rkey);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void do_poll(const char *args)
{
	int n, k = 0;
	unsigned ms;
	struct ibv_wc wc;

	if (!q.cq || sscanf(args, "%d %u", &n, &ms) != 2) {
		failed("poll", EINVAL);
		return;
	}
	uint64_t end = now_ms() + ms;
	while (k < n) {
		int r = ibv_poll_cq(q.cq, 1, &wc);

		if (r < 0) {
			failed("poll CQ", EIO);
			return;
		}
		if (r == 0) {
			if (now_ms() >= end)
				break;
			sched_yield();
			continue;
		}
		k++;
		fprintf(out, "wc %" PRIu64 " %d %d %u %u %u\n", wc.wr_id, wc.status, wc.opcode, wc.byte_len,
			(wc.wc_flags & IBV_WC_WITH_IMM)	  ? ntohl(wc.imm_data)
			: (wc.wc_flags & (1 << 2)) ? wc.invalidated_rkey /* IB_WC_WITH_INVALIDATE: rdma_rxe passes the kernel's */
							  : 0,
			wc.wc_flags);
	}
	answer("ok %d", k);
}

static void do_state(void)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	int err;

	if (!q.qp || (err = ibv_query_qp(q.qp, &attr, IBV_QP_STATE, &init))) {
		failed("query QP", q.qp ? err : EINVAL);
		return;
	}
	answer("ok %d", attr.qp_state);
}

static void serve(int fd)
{
	char line[512];

	in = fdopen(fd, "r");
	out = fdopen(dup(fd), "w");
	while (fgets(line, sizeof line, in)) {
		char *args = line + strcspn(line, " \n");

		if (*args)
			*args++ = 0;
		if (strcmp(line, "open") == 0)
			do_open(args);
		else if (strcmp(line, "connect") == 0)
			do_connect(args);
		else if (strcmp(line, "fill") == 0)
			do_fill(args);
		else if (strcmp(line, "dump") == 0)
			do_dump(args);
		else if (strcmp(line, "recv") == 0)
			do_recv(args);
		else if (strcmp(line, "send") == 0)
			do_send(args);
		else if (strcmp(line, "raw") == 0)
			do_raw(args);
		else if (strcmp(line, "window") == 0)
			do_window(args);
		else if (strcmp(line, "poll") == 0)
			do_poll(args);
		else if (strcmp(line, "state") == 0)
			do_state();
		else
			failed(line, ENOSYS);
	}
}

int main(int argc, char **argv)
{
	int one = 1;
	int l = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(argc > 1 ? atoi(argv[1]) : 18600) };

	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(l, (struct sockaddr *)&at, sizeof at) || listen(l, 8)) {
		perror("peer");
		return 1;
	}
	for (;;) {
		int fd = accept(l, NULL, NULL);

		if (fd < 0)
			continue;
		if (fork() == 0) { /* its objects go with it, whatever becomes of the connection */
			close(l);
			serve(fd);
			_exit(0);
		}
		close(fd);
	}
}
