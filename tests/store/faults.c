/* Loaded before libc into a test's own process: while the file that STORE_FAULT names says so, writes
   to a write-ahead log find no space ("full"), or its syncs fail ("eio"), or those of the database
   ("eio-db"), as a real disk's do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* The head of a frame still fits, its page does not. */
#define PAGE(count) ((count) > 100)

static int armed(const char *fault, int fd, const char *end) {
  char link[64], path[4096], said[16] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1), ending = strlen(end);
  if (length < ending || strncmp(path + length - ending, end, ending) != 0) return 0;
  const char *name = getenv("STORE_FAULT");
  int file = name ? open(name, O_RDONLY) : -1;
  if (file < 0) return 0;
  ssize_t got = read(file, said, sizeof said - 1);
  close(file);
  return got > 0 && strcmp(said, fault) == 0;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
  ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");
  if (PAGE(count) && armed("full", fd, "-wal")) { errno = ENOSPC; return -1; }
  return real(fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
  ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
  if (PAGE(count) && armed("full", fd, "-wal")) { errno = ENOSPC; return -1; }
  return real(fd, bytes, count, at);
}

int fsync(int fd) {
  int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
  if (armed("eio", fd, "-wal") || armed("eio-db", fd, ".db")) { errno = EIO; return -1; }
  return real(fd);
}

int fdatasync(int fd) {
  int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
  if (armed("eio", fd, "-wal") || armed("eio-db", fd, ".db")) { errno = EIO; return -1; }
  return real(fd);
}
