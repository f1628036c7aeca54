package uverbs

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Commands of the character device.
const (
	cmdGetContext  = 0
	cmdQueryDevice = 1
	cmdQueryPort   = 2
	cmdExtended    = 1 << 31
)

const maxPorts = 255

// Query asks the character device at a path, /dev/infiniband/uverbs0, for the
// attributes of its device and of each of its ports. The error is the system's.
func Query(path string) (device snapshot.Attr, ports map[int]snapshot.Attr, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_CLOEXEC|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil {
		return nil, nil, err
	} else if st.Mode()&fs.ModeCharDevice == 0 {
		return nil, nil, errors.New("no character device")
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	cerr := conn.Control(func(fd uintptr) { device, ports, err = query(int(fd)) })
	return device, ports, errors.Join(err, cerr)
}

func query(fd int) (snapshot.Attr, map[int]snapshot.Attr, error) {
	var ctx [8]byte
	if err := command(fd, cmdGetContext, ctx[:], nil); err != nil {
		return nil, nil, err
	}
	_ = unix.Close(int(int32(binary.NativeEndian.Uint32(ctx[:])))) // asynchronous events
	device := snapshot.Attr{"num_comp_vectors": uint64(binary.NativeEndian.Uint32(ctx[4:]))}
	var b [sizeDevice]byte
	if err := command(fd, cmdQueryDevice, b[:], nil); err != nil {
		return nil, nil, err
	}
	parse(device, b[:], deviceFields)
	extended(fd, device)
	ports := map[int]snapshot.Attr{}
	for n := 1; n <= int(device["phys_port_cnt"]) && n <= maxPorts; n++ {
		var b [sizePort]byte
		if err := command(fd, cmdQueryPort, b[:], []byte{byte(n), 0, 0, 0, 0, 0, 0, 0}); err != nil {
			return device, nil, err
		}
		p := snapshot.Attr{}
		parse(p, b[:], portFields)
		ports[n] = p
	}
	return device, ports, nil
}

// command sends a command; the kernel writes the answer to resp, which must not move
// from when its address is taken.
func command(fd int, cmd uint32, resp, body []byte) error {
	var pin runtime.Pinner
	pin.Pin(&resp[0])
	defer pin.Unpin()
	b := make([]byte, 0, 24)
	b = binary.NativeEndian.AppendUint32(b, cmd)
	b = binary.NativeEndian.AppendUint16(b, uint16((16+len(body))/4))
	b = binary.NativeEndian.AppendUint16(b, uint16(len(resp)/4))
	b = binary.NativeEndian.AppendUint64(b, uint64(uintptr(unsafe.Pointer(&resp[0]))))
	b = append(b, body...)
	return send(fd, b, resp)
}

// extended asks for what newer kernels have beside the first answer. A kernel without
// the command leaves the attributes out.
func extended(fd int, device snapshot.Attr) {
	resp := make([]byte, sizeDeviceEx)
	var pin runtime.Pinner
	pin.Pin(&resp[0])
	defer pin.Unpin()
	var b []byte
	b = binary.NativeEndian.AppendUint32(b, cmdQueryDevice|cmdExtended)
	b = binary.NativeEndian.AppendUint16(b, 1) // of 8 bytes
	b = binary.NativeEndian.AppendUint16(b, sizeDeviceEx/8)
	b = binary.NativeEndian.AppendUint64(b, uint64(uintptr(unsafe.Pointer(&resp[0]))))
	b = append(b, make([]byte, 16)...)
	if err := send(fd, b, resp); err != nil {
		return
	}
	n := min(int(binary.NativeEndian.Uint32(resp[sizeDevice+4:])), len(resp))
	if n > sizeDevice {
		parse(device, resp[sizeDevice:n], extFields)
	}
}

// send writes a command that holds the address of resp.
func send(fd int, b, resp []byte) error {
	n, err := unix.Write(fd, b)
	runtime.KeepAlive(resp)
	if err != nil {
		return err
	}
	if n != len(b) {
		return errors.New("the command was taken in part")
	}
	return nil
}
