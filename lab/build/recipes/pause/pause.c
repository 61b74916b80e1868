/* pause: keeps a pod's namespaces alive and reaps orphans, as Kubernetes' own pause does.
 * Written for the lab; upstream's is not in any Go module. `-v` prints a line and ends, which is
 * what the Job of kubeadm's health check before an upgrade runs. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int signal_number)
{
	(void)signal_number;
	_exit(0);
}

static void reap(int signal_number)
{
	(void)signal_number;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

int main(int argc, char **argv)
{
	struct sigaction end = {.sa_handler = leave};
	struct sigaction child = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};

	if (argc > 1 && strcmp(argv[1], "-v") == 0)
		return puts("pause.c of the gpuboot lab") < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	if (sigaction(SIGINT, &end, NULL) < 0 || sigaction(SIGTERM, &end, NULL) < 0 ||
	    sigaction(SIGCHLD, &child, NULL) < 0)
		return EXIT_FAILURE;
	for (;;)
		pause();
}
