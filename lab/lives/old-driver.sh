# What `apt remove nvidia-driver-570` leaves of a driver from Ubuntu's archive: packages of which only
# the configuration is there, a DKMS module that is added and not built, a library of no package.
wear() {
  for name in nvidia-kernel-common-570 nvidia-dkms-570 nvidia-driver-570; do
    folder=/var/tmp/$name
    mkdir -p $folder/DEBIAN
    case $name in
      nvidia-kernel-common-570)
        mkdir -p $folder/etc/modprobe.d
        echo 'options nvidia_drm modeset=1' > $folder/etc/modprobe.d/nvidia-graphics-drivers-kms.conf
        echo /etc/modprobe.d/nvidia-graphics-drivers-kms.conf > $folder/DEBIAN/conffiles ;;
      nvidia-dkms-570)
        mkdir -p $folder/etc/dkms
        echo '# kept by hand' > $folder/etc/dkms/nvidia-570.conf
        echo /etc/dkms/nvidia-570.conf > $folder/DEBIAN/conffiles ;;
    esac
    made_package $name 570.133.07-0ubuntu0.24.04.1 "" $folder
  done
  dpkg -r nvidia-driver-570 nvidia-dkms-570 nvidia-kernel-common-570 >/dev/null
  mkdir -p /usr/src/nvidia-570.133.07 /var/lib/dkms/nvidia/570.133.07/build
  printf 'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="570.133.07"\nBUILT_MODULE_NAME[0]="nvidia"\nDEST_MODULE_LOCATION[0]="/kernel"\nAUTOINSTALL="yes"\n' \
    > /usr/src/nvidia-570.133.07/dkms.conf
  ln -sfn /usr/src/nvidia-570.133.07 /var/lib/dkms/nvidia/570.133.07/source
  mkdir -p /usr/local/lib/old
  echo 'not a library' > /usr/local/lib/old/libcuda.so.570.133.07
}

works() {
  has /etc/dkms/nvidia-570.conf "kept by hand"
  [ "$(dpkg-query -W -f '${db:Status-Abbrev}' nvidia-kernel-common-570)" = "rc " ] ||
    fail "nvidia-kernel-common-570 is not as it was"
}
