/* netlink.c: in place of libmnl's sockets, for a program that asks NETLINK_RDMA: its questions go to the Unix socket
 * that $VERBENA_NETLINK names, where a test answers in the kernel's layout. Loaded before libmnl. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

struct mnl_socket {
	int fd;
};

struct mnl_socket *mnl_socket_open(int bus)
{
	const char *path = getenv("VERBENA_NETLINK");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	struct mnl_socket *s = calloc(1, sizeof *s);

	(void)bus;
	if (!s || !path || strlen(path) >= sizeof to.sun_path)
		return NULL;
	strcpy(to.sun_path, path);
	s->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s->fd < 0 || connect(s->fd, (struct sockaddr *)&to, sizeof to) < 0)
		return NULL;
	return s;
}

int mnl_socket_bind(struct mnl_socket *s, unsigned groups, pid_t pid)
{
	(void)s, (void)groups, (void)pid;
	return 0;
}

int mnl_socket_setsockopt(const struct mnl_socket *s, int type, void *buf, socklen_t len)
{
	(void)s, (void)type, (void)buf, (void)len;
	return 0;
}

unsigned mnl_socket_get_portid(const struct mnl_socket *s)
{
	(void)s;
	return 0;
}

int mnl_socket_get_fd(const struct mnl_socket *s)
{
	return s->fd;
}

ssize_t mnl_socket_sendto(const struct mnl_socket *s, const void *buf, size_t len)
{
	return send(s->fd, buf, len, 0);
}

ssize_t mnl_socket_recvfrom(const struct mnl_socket *s, void *buf, size_t len)
{
	return recv(s->fd, buf, len, 0);
}

int mnl_socket_close(struct mnl_socket *s)
{
	int r = close(s->fd);

	free(s);
	return r;
}
