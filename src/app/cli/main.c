#include "cli.h"

int main(int argc, char **argv)
{
    return dgm_cli_main(argc, argv);
}
