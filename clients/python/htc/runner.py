# Calls a function of a notebook with the item of this job's number, and leaves in a file what it returns. It needs only
# what any Python 3 has.
import os
import pickle
import sys
import zlib

here = os.path.dirname(os.path.abspath(__file__))
left = os.path.join(os.getcwd(), "_htc_result.pickle")  # the function may go to another directory


def main(number):
    with open(os.path.join(here, "htc-function"), "rb") as f:
        content = pickle.loads(zlib.decompress(f.read()))
    wanted, is_here = content["python"], list(sys.version_info[:2])
    if wanted and wanted != is_here:
        sys.exit(
            "The function was pickled by Python %d.%d, and the image has %d.%d: functions need an image with the "
            "version of the notebook, such as python:%d.%d." % tuple(wanted + is_here + wanted)
        )
    pickler = pickle
    if os.path.exists(os.path.join(here, "cloudpickle.zip")):
        sys.path.insert(0, os.path.join(here, "cloudpickle.zip"))
        import cloudpickle as pickler
    function = pickle.loads(content["function"])
    arguments = [] if content["items"] is None else [pickle.loads(content["items"][number])]
    result = pickler.dumps(function(*arguments))
    with open(left, "wb") as f:
        f.write(result)


if __name__ == "__main__":  # processes of multiprocessing import this file, too
    main(int(sys.argv[1]))
