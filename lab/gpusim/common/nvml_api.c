/* Opening NVML at run time. See nvml_api.h. */
#include "nvml_api.h"

#include <dlfcn.h>
#include <stddef.h>

#define NVML_DEFINE(type, name, parameters) type(*name) parameters;
NVML_FUNCTIONS(NVML_DEFINE)

nvmlReturn_t nvml_open(void) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) return NVML_ERROR_LIBRARY_NOT_FOUND;
#define NVML_FIND(type, name, parameters) \
    if (!(*(void **)&name = dlsym(library, #name))) return NVML_ERROR_FUNCTION_NOT_FOUND;
    NVML_FUNCTIONS(NVML_FIND)
    return NVML_SUCCESS;
}
